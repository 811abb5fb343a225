#include "partition/layout.h"

#include <algorithm>
#include <numeric>

#include "common/interrupt.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/threads.h"

namespace cgcn {
namespace {

constexpr size_t kLaidOutRows = 512;               // rows a thread takes at a time
constexpr size_t kMostChunk = size_t{32} << 20;    // bytes; one is written while the next is gathered
constexpr size_t kMappedAround = size_t{2} << 20;  // bytes that may become resident where one is touched

// Counting sort of the nodes by cluster.
void sort_by_cluster(std::span<const NodeId> nodes, const Assignment& assignment, std::span<NodeId> order,
                     std::span<NodeId> cluster_offsets) {
  std::fill(cluster_offsets.begin(), cluster_offsets.end(), 0);
  for (const uint32_t cluster : assignment.clusters) ++cluster_offsets[size_t{cluster} + 1];
  std::partial_sum(cluster_offsets.begin(), cluster_offsets.end(), cluster_offsets.begin());
  std::vector<NodeId> next(cluster_offsets.begin(), cluster_offsets.end() - 1);
  for (size_t i = 0; i < nodes.size(); ++i) order[next[assignment.clusters[i]]++] = nodes[i];
}

class LayoutWriter {
 public:
  LayoutWriter(const Store& store, std::span<const NodeId> order, uint64_t memory, StoreWriter& writer)
      : store_(store),
        data_(store.dataset()),
        order_(order),
        writer_(writer),
        memory_(memory),
        progress_("layout", order.size() * 2) {}

  void write() {
    write_adjacency();
    write_features();
    write_labels();
    if (!data_.split.empty()) gather_array<uint8_t>("split", data_.split, 0);
    if (!data_.graph_ids.empty()) gather_array<uint32_t>("graph_ids", data_.graph_ids, 0);
    write_ids();
    writer_.write_class_names(data_.class_names);
  }

 private:
  // Calls use(begin, end) for runs of rows whose bytes, as size_of(row) tells, make about a chunk.
  template <class SizeOf, class Use>
  void for_each_chunk(SizeOf&& size_of, Use&& use) {
    const size_t most_rows = memory_ / 4 / kMappedAround;
    const size_t most_bytes = std::min<uint64_t>(memory_ / 16, kMostChunk);
    for (size_t begin = 0; begin < order_.size();) {
      throw_if_interrupted();
      size_t end = begin, bytes = 0;
      while (end < order_.size() && (end == begin || (bytes < most_bytes && end - begin < most_rows)))
        bytes += size_of(order_[end++]);
      use(begin, end);
      touched_ += std::max<size_t>(bytes, (end - begin) * kMappedAround);
      if (touched_ > memory_ / 8) {  // so much may have become resident: look
        touched_ = 0;
        if (memory_figures().file_backed > memory_ / 4) store_.release_pages();
      }
      begin = end;
    }
  }

  template <class T>
  void gather_array(const std::string& name, std::span<const T> values, uint64_t columns) {
    const size_t width = std::max<uint64_t>(columns, 1);
    ArrayWriter array = writer_.begin_array<T>(name, columns);
    for_each_chunk([&](NodeId) { return width * sizeof(T); },
                   [&](size_t begin, size_t end) {
                     Buffer<std::byte>& chunk = chunks_[turn_ ^= 1];  // the other one is being written
                     chunk.reserve_discarding((end - begin) * width * sizeof(T));
                     T* out = reinterpret_cast<T*>(chunk.data());
                     parallel_blocks(end - begin, kLaidOutRows, [&](size_t first, size_t last) {
                       for (size_t r = first; r < last; ++r)
                         std::copy_n(values.data() + size_t{order_[begin + r]} * width, width, out + r * width);
                     });
                     array.append_behind(std::span<const T>(out, (end - begin) * width));
                   });
    writer_.end_array(name, array);
  }

  // Rows of varying length: offsets beside the arrays that they cut.
  template <class T>
  void gather_rows(const std::string& name, std::span<const uint64_t> offsets, std::span<const T> values) {
    ArrayWriter array = writer_.begin_array<T>(name);
    for_each_chunk([&](NodeId v) { return (offsets[size_t{v} + 1] - offsets[v]) * sizeof(T); },
                   [&](size_t begin, size_t end) {
                     for (size_t r = begin; r < end; ++r) {
                       const NodeId v = order_[r];
                       array.append(values.subspan(offsets[v], offsets[size_t{v} + 1] - offsets[v]));
                     }
                   });
    writer_.end_array(name, array);
  }
  void gather_offsets(const std::string& name, std::span<const uint64_t> offsets) {
    ArrayWriter array = writer_.begin_array<uint64_t>(name);
    uint64_t total = 0;
    array.append(std::span<const uint64_t>(&total, 1));
    for (const NodeId v : order_) {
      total += offsets[size_t{v} + 1] - offsets[v];
      array.append(std::span<const uint64_t>(&total, 1));
    }
    writer_.end_array(name, array);
  }

  void write_adjacency();
  size_t map_row(NodeId v, std::span<const NodeId> position, NodeId* targets, float* weights,
                 std::vector<std::pair<NodeId, float>>& scratch) const;

  void write_features() {
    const FeatureMatrix& features = data_.features;
    if (features.kind() == FeatureMatrix::Kind::kDense32) {
      gather_array<float>("features", features.dense32(), features.columns());
    } else if (features.kind() == FeatureMatrix::Kind::kDense16) {
      gather_array<Half>("features", features.dense16(), features.columns());
    } else if (features.kind() == FeatureMatrix::Kind::kSparse) {
      gather_offsets("features_offsets", features.sparse_offsets());
      gather_rows<uint32_t>("features_columns", features.sparse_offsets(), features.sparse_columns());
      gather_rows<float>("features_values", features.sparse_offsets(), features.sparse_values());
    }
    writer_.declare_features(features.kind(), features.columns());
    progress_.advance(order_.size());
  }

  void write_labels() {
    const Labels& labels = data_.labels;
    if (!labels.present()) return;
    if (labels.multi_label())
      gather_array<uint8_t>("labels", labels.bits(), Labels::row_bytes(labels.num_classes()));
    else if (labels.regression())
      gather_array<float>("labels", labels.values(), 0);
    else
      gather_array<int32_t>("labels", labels.classes(), 0);
    writer_.declare_labels(labels);
  }

  void write_ids();

  const Store& store_;
  const Dataset data_;
  std::span<const NodeId> order_;
  StoreWriter& writer_;
  const uint64_t memory_;
  Progress progress_;
  Buffer<std::byte> chunks_[2];
  size_t turn_ = 0;
  uint64_t touched_ = 0;  // bytes that may be mapped since the memory was looked at
};

// One row of the store as a row of the layout: neighbours that are not in the layout fall away. Returns its length.
size_t LayoutWriter::map_row(NodeId v, std::span<const NodeId> position, NodeId* targets, float* weights,
                             std::vector<std::pair<NodeId, float>>& scratch) const {
  const auto neighbours = data_.graph.neighbours(v);
  size_t length = 0;
  if (weights == nullptr) {
    for (const NodeId u : neighbours)
      if (position[u] != kNoNode) targets[length++] = position[u];
    std::sort(targets, targets + length);
    return length;
  }
  const auto given = data_.graph.neighbour_weights(v);
  scratch.clear();
  for (size_t k = 0; k < neighbours.size(); ++k)
    if (position[neighbours[k]] != kNoNode) scratch.emplace_back(position[neighbours[k]], given[k]);
  std::sort(scratch.begin(), scratch.end());
  for (const auto& [target, weight] : scratch) {
    targets[length] = target;
    weights[length++] = weight;
  }
  return length;
}

void LayoutWriter::write_adjacency() {
  const CsrGraph& graph = data_.graph;
  Buffer<NodeId> position(graph.num_nodes(), kNoNode);
  for (size_t r = 0; r < order_.size(); ++r) position[order_[r]] = static_cast<NodeId>(r);
  struct Chunk {
    Buffer<NodeId> targets;
    Buffer<float> weights;
  } chunks[2];  // before the writers, which read them until they are gone
  ArrayWriter offsets = writer_.begin_array<EdgeOffset>("adjacency_offsets");
  ArrayWriter targets = writer_.begin_array<NodeId>("adjacency_targets");
  std::unique_ptr<ArrayWriter> weights;
  if (graph.weighted()) weights.reset(new ArrayWriter(writer_.begin_array<float>("adjacency_weights")));
  EdgeOffset total = 0;
  uint64_t loops = 0;
  offsets.append(std::span<const EdgeOffset>(&total, 1));
  size_t turn = 0;
  std::vector<size_t> starts, lengths;  // of the chunk's rows: room for all neighbours, and those that stayed
  std::vector<EdgeOffset> ends;
  for_each_chunk([&](NodeId v) { return graph.degree(v) * sizeof(NodeId); },
                 [&](size_t begin, size_t end) {
                   Chunk& chunk = chunks[turn ^= 1];  // the other one is being written
                   starts.assign(1, 0);
                   for (size_t r = begin; r < end; ++r) starts.push_back(starts.back() + graph.degree(order_[r]));
                   lengths.assign(end - begin, 0);
                   chunk.targets.reserve_discarding(starts.back());
                   if (weights) chunk.weights.reserve_discarding(starts.back());
                   parallel_blocks(end - begin, kLaidOutRows, [&](size_t first, size_t last) {
                     std::vector<std::pair<NodeId, float>> scratch;
                     for (size_t r = first; r < last; ++r)
                       lengths[r] = map_row(order_[begin + r], position, chunk.targets.data() + starts[r],
                                            weights ? chunk.weights.data() + starts[r] : nullptr, scratch);
                   });
                   ends.clear();
                   size_t kept = 0;  // rows are moved together
                   for (size_t r = 0; r < end - begin; ++r) {
                     const NodeId* row = chunk.targets.data() + starts[r];
                     loops += std::binary_search(row, row + lengths[r], static_cast<NodeId>(begin + r)) ? 1 : 0;
                     std::copy_n(row, lengths[r], chunk.targets.data() + kept);
                     if (weights)
                       std::copy_n(chunk.weights.data() + starts[r], lengths[r], chunk.weights.data() + kept);
                     kept += lengths[r];
                     ends.push_back(total + kept);
                   }
                   total += kept;
                   targets.append_behind(std::span<const NodeId>(chunk.targets.data(), kept));
                   if (weights) weights->append_behind(std::span<const float>(chunk.weights.data(), kept));
                   offsets.append(std::span<const EdgeOffset>(ends));
                   progress_.advance(end - begin);
                 });
  writer_.end_array("adjacency_offsets", offsets);
  writer_.end_array("adjacency_targets", targets);
  if (weights) writer_.end_array("adjacency_weights", *weights);
  const uint64_t edges = graph.directed() ? total : (total - loops) / 2 + loops;
  writer_.declare_graph(static_cast<NodeId>(order_.size()), total, edges, graph.directed(), graph.weighted());
}

// What the user calls the nodes. Where that is their number in the store, those numbers are the layout's ids.
void LayoutWriter::write_ids() {
  if (data_.ids.kind() == NodeIds::Kind::kIntegers) {
    gather_array<int64_t>("node_ids", data_.ids.integer_ids(), 0);
    writer_.declare_ids(NodeIds::Kind::kIntegers);
  } else if (data_.ids.kind() == NodeIds::Kind::kStrings) {
    gather_offsets("node_ids_offsets", data_.ids.string_offsets());
    gather_rows<char>("node_ids_text", data_.ids.string_offsets(), data_.ids.string_text());
    writer_.declare_ids(NodeIds::Kind::kStrings);
  }
}

// Unit rows at the columns that the nodes have in the store.
FeatureMatrix unit_rows(const SharedArray<NodeId>& columns, uint32_t num_columns) {
  Buffer<EdgeOffset> offsets(columns.size() + 1);
  std::iota(offsets.begin(), offsets.end(), EdgeOffset{0});
  return FeatureMatrix::sparse(std::move(offsets), columns, Buffer<float>(columns.size(), 1.0f), num_columns);
}

}  // namespace

void write_layout(const Store& store, std::span<const NodeId> nodes, const Assignment& assignment, uint64_t memory,
                  StoreWriter& writer) {
  Buffer<NodeId> order(nodes.size());
  Buffer<NodeId> cluster_offsets(size_t{assignment.num_clusters} + 1);
  sort_by_cluster(nodes, assignment, order, cluster_offsets);
  writer.write_array("order", std::span<const NodeId>(order));
  writer.write_array("cluster_offsets", std::span<const NodeId>(cluster_offsets));
  LayoutWriter(store, order, memory, writer).write();
  store.release_pages();
}

ClusterLayout open_layout(std::shared_ptr<const Store> files) {
  const Store& partition = *files;
  ClusterLayout layout{.data = partition.dataset(),
                       .order = partition.array<NodeId>("order"),
                       .cluster_offsets = partition.array<NodeId>("cluster_offsets"),
                       .path = partition.path(),
                       .files = files};
  const NodeId rows = layout.data.num_nodes();
  const auto& offsets = layout.cluster_offsets;
  const auto damaged = [&](const char* file) {
    return Error("the partition is damaged: it does not fit the arrays beside it", (partition.path() / file).string(),
                 "remove the folder and partition again");
  };
  if (layout.order.size() != rows) throw damaged("order.npy");
  if (offsets.size() < 2 || offsets[0] != 0 || offsets[offsets.size() - 1] != rows ||
      std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) != offsets.end())
    throw damaged("cluster_offsets.npy");
  if (layout.data.features.kind() == FeatureMatrix::Kind::kIdentity) {
    const auto columns = partition.meta().at("features").at("columns").get<uint32_t>();
    if (std::any_of(layout.order.begin(), layout.order.end(), [&](NodeId v) { return v >= columns; }))
      throw damaged("order.npy");
    layout.data.features = unit_rows(layout.order, columns);
  }
  if (layout.data.ids.kind() == NodeIds::Kind::kRange) {
    Buffer<int64_t> ids(rows);
    std::copy(layout.order.begin(), layout.order.end(), ids.begin());
    layout.data.ids = NodeIds::integers(std::move(ids));
  }
  return layout;
}

}  // namespace cgcn
