#include "batch/methods.h"

#include <charconv>
#include <stdexcept>

#include "batch/sampled_batches.h"

namespace cgcn {
namespace {

constexpr uint32_t kMostSampled = 1'000'000;  // what is drawn for a batch lies in memory

// "10,25". Throws std::invalid_argument.
std::vector<uint32_t> parse_fanouts(const std::string& text) {
  std::vector<uint32_t> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    uint32_t number = 0;
    const auto [after, problem] = std::from_chars(at, end, number);
    if (problem != std::errc() || (after != end && *after != ','))
      throw std::invalid_argument("is auto, or whole numbers with commas between, such as 10,25");
    if (number > kMostSampled) throw std::invalid_argument("has a number above 1000000; 0 takes all neighbours");
    numbers.push_back(number);
    if (after == end) return numbers;
    at = after + 1;
  }
}

// All nodes and edges, one step per epoch: the same batch every time, made once.
class WholeGraph final : public BatchSource {
 public:
  WholeGraph(const ClusterLayout& layout, const ClusterBatchOptions& options)
      : batches_(layout, with_all_clusters(options, layout)), whole_(batches_.make_storage()) {
    batches_.prepare(0, 0, *whole_);
  }
  uint32_t batches_per_epoch() const override { return 1; }
  BatchLimits limits() const override { return batches_.limits(); }
  uint64_t most_entries(std::span<const uint64_t> offsets) const override { return batches_.most_entries(offsets); }
  std::unique_ptr<BatchStorage> make_storage() const override { return std::make_unique<BatchStorage>(); }
  void prepare(uint32_t epoch, uint32_t, BatchStorage& storage) const override {
    storage.batch = whole_->batch;
    storage.batch.epoch = epoch;
  }

 private:
  static ClusterBatchOptions with_all_clusters(ClusterBatchOptions options, const ClusterLayout& layout) {
    options.clusters_per_batch = layout.num_clusters();
    return options;
  }

  ClusterBatches batches_;
  std::unique_ptr<BatchStorage> whole_;
};

std::unique_ptr<LayerSampler> make_sampler(const MethodOptions& options, const ClusterLayout& layout,
                                           const Normalisation& normalisation, uint32_t layers) {
  const CsrGraph& graph = layout.data.graph;
  if (options.method == Method::kFastGcn)
    return std::make_unique<ImportanceSampler>(graph, normalisation, options.layer_nodes, options.importance);
  NeighbourSamplerOptions neighbours{.fanouts = options.fanouts(), .layers = layers};
  neighbours.replacement = options.method == Method::kGraphSage;
  if (options.method == Method::kVrGcn) neighbours.control = options.control;
  return std::make_unique<NeighbourSampler>(graph, normalisation, std::move(neighbours));
}

}  // namespace

void MethodOptions::list_options(OptionList& list) {
  list.begin_group("Compared methods");
  const auto of = [this](std::initializer_list<Method> methods) {
    return [this, taking = std::vector(methods)] {
      return std::find(taking.begin(), taking.end(), method) != taking.end();
    };
  };
  constexpr const char* kOther = "another --method takes it";
  list.add_choice("method", &method,
                  {{"cluster", Method::kCluster},
                   {"full-batch", Method::kFullBatch},
                   {"sgd", Method::kSgd},
                   {"graphsage", Method::kGraphSage},
                   {"fastgcn", Method::kFastGcn},
                   {"vrgcn", Method::kVrGcn}},
                  "training method; cluster is Cluster-GCN");
  list.add("batch-nodes", &targets, "sgd, graphsage, fastgcn, vrgcn: training nodes per batch")
      .range(1, 4e9)
      .needs(of({Method::kSgd, Method::kGraphSage, Method::kFastGcn, Method::kVrGcn}), kOther);
  list.add("fanout", &fanout,
           "graphsage, vrgcn: sampled neighbours per node, from the last layer down, the last number for all deeper "
           "ones, 0 for all neighbours; auto: 10,25 and 2")
      .value("S,…")
      .shape([](const std::string& text) {
        if (text != "auto") parse_fanouts(text);
      })
      .needs(of({Method::kGraphSage, Method::kVrGcn}), kOther);
  list.add("layer-nodes", &layer_nodes, "fastgcn: sampled nodes per layer; 0: all")
      .range(0, kMostSampled)
      .needs(of({Method::kFastGcn}), kOther);
  list.add_choice(
          "importance", &importance, {{"squared", Importance::kSquared}, {"norm", Importance::kNorm}},
          "fastgcn: nodes are drawn by the squared norm of their column, or by the norm as in the released code")
      .needs([this] { return layer_nodes > 0; }, "--layer-nodes 0 draws none")
      .needs(of({Method::kFastGcn}), kOther);
  list.add_choice("control-variate", &control, {{"cv", ControlVariate::kCv}, {"cvd", ControlVariate::kCvd}},
                  "vrgcn: cv: plain control variates; cvd: dropout handled separately")
      .needs(of({Method::kVrGcn}), kOther);
  list.begin_group("Model");
  list.add_choice("first-layer", &first_layer, {{"exact", FirstLayer::kExact}, {"batch", FirstLayer::kBatch}},
                  "exact: layer 1 uses A·X of all edges, computed once; batch: it aggregates over the batch's edges "
                  "like the others, with "
                  "--normalisation");
}

std::vector<uint32_t> MethodOptions::fanouts() const {
  if (method == Method::kSgd) return {0};
  if (fanout != "auto") return parse_fanouts(fanout);
  if (method == Method::kVrGcn) return {2};
  return {10, 25};
}

PartitionOptions MethodOptions::partition(const PartitionOptions& asked) const {
  const PartitionOptions settled = asked.settled();  // a mistake is one, also if no clusters are used
  if (uses_clusters()) return settled;
  PartitionOptions one;
  one.parts = 1;
  one.transductive = asked.transductive;
  return one;
}

std::unique_ptr<BatchSource> make_batch_source(const MethodOptions& options, const ClusterLayout& layout,
                                               ClusterBatchOptions clusters, uint32_t layers) {
  clusters.aggregates_input = clusters.aggregates_input || options.first_layer == FirstLayer::kBatch;
  if (options.method == Method::kCluster) return std::make_unique<ClusterBatches>(layout, clusters);
  if (options.method == Method::kFullBatch) return std::make_unique<WholeGraph>(layout, clusters);
  return std::make_unique<SampledBatches>(layout.data, make_sampler(options, layout, clusters.normalisation, layers),
                                          SampledBatchOptions{.layers = layers,
                                                              .targets = options.targets,
                                                              .aggregates_input = clusters.aggregates_input,
                                                              .seed = clusters.seed});
}

}  // namespace cgcn
