// Graphs from stores, and from arrays that the caller has.
#include <algorithm>

#include "common/memory_budget.h"
#include "engine/arrays.h"
#include "engine/content.h"
#include "engine/import.h"
#include "engine/partition.h"
#include "generate/generate.h"

namespace clustergcn {
namespace {

template <class T>
Array look(std::span<const T> values, uint64_t columns, const std::shared_ptr<const Graph::Content>& owner) {
  if (values.empty()) return {};
  Array array = view(values, columns);
  array.owner = owner;
  return array;
}

// What training derives from it and keeps: the layout in cluster order, and A·X of the training nodes and of all nodes.
uint64_t derived_bytes(const cgcn::Dataset& data) {
  return 3 * (data.graph.stored_bytes() + 2 * data.features.stored_bytes()) + (uint64_t{16} << 20);
}

// A request with these options set, and the others as they are by default.
template <class Request>
Request request_with(const Graph::Settings& options) {
  Request request;
  cgcn::OptionList list;
  request.list_options(list);
  for (const auto& [name, value] : options) set_option(list, name, value);
  return request;
}

}  // namespace

Graph Graph::open(const std::string& store) {
  return call({}, [&] { return Graph(std::make_shared<Content>(cgcn::Store(store))); });
}

Graph Graph::from_arrays(const GraphArrays& arrays, const Session& session) {
  return call(session, [&] {
    cgcn::Dataset data = cgcn::make_dataset(arrays);
    auto folder = std::make_shared<cgcn::MemoryFolder>(derived_bytes(data));
    return Graph(std::make_shared<Content>(std::move(data), std::move(folder)));
  });
}

Graph Graph::import(const std::string& source, const std::string& store, const Settings& options,
                    const Session& session) {
  return call(session, [&] {
    const auto request = request_with<cgcn::ImportRequest>(options);
    for (const std::string& line : cgcn::import_store(source, store, request).report.lines)
      session.log ? session.log(line) : void();
    return Graph(std::make_shared<Content>(cgcn::Store(store)));
  });
}

Graph Graph::generate(const std::string& store, const Settings& options, const Session& session) {
  return call(session, [&] {
    cgcn::generate_store(store, request_with<cgcn::GenerateOptions>(options), cgcn::StagedDirectory::Existing::kRefuse);
    return Graph(std::make_shared<Content>(cgcn::Store(store)));
  });
}

Graph::Clusters Graph::partition(const Settings& options, const Session& session) const {
  return call(session, [&] {
    const cgcn::PartitionReport report =
        cgcn::partition_store(content_->store, request_with<cgcn::PartitionRequest>(options));
    return Clusters{report.name(), report.quality.clusters, report.quality.share_kept(), report.quality.balance(),
                    report.result.reused};
  });
}

void Graph::save(const std::string& store, bool replace) const {
  call({}, [&] {
    cgcn::write_store(store, content_->data,
                      replace ? cgcn::StagedDirectory::Existing::kReplace : cgcn::StagedDirectory::Existing::kRefuse);
  });
}

const std::string& Graph::name() const { return content_->data.name; }
std::string Graph::store() const { return content_->data.path.string(); }
uint64_t Graph::num_nodes() const { return content_->data.num_nodes(); }
uint64_t Graph::num_edges() const { return content_->data.graph.num_edges(); }
uint64_t Graph::num_features() const {
  const cgcn::FeatureMatrix& features = content_->data.features;
  return features.kind() == cgcn::FeatureMatrix::Kind::kIdentity ? 0 : features.columns();
}
uint32_t Graph::num_classes() const { return content_->data.labels.num_classes(); }
bool Graph::directed() const { return content_->data.graph.directed(); }
bool Graph::multi_label() const { return content_->data.labels.multi_label(); }
bool Graph::regression() const { return content_->data.labels.regression(); }
std::array<uint64_t, 3> Graph::split_sizes() const { return content_->data.split_sizes(); }
std::vector<std::string> Graph::class_names() const { return content_->data.class_names; }
std::vector<std::string> Graph::feature_names() const { return content_->data.feature_names; }
std::vector<std::string> Graph::node_ids() const {
  std::vector<std::string> ids;
  if (content_->data.ids.kind() == cgcn::NodeIds::Kind::kRange) return ids;
  for (cgcn::NodeId v = 0; v < num_nodes(); ++v) ids.push_back(content_->data.ids.text(v));
  return ids;
}
std::string Graph::hash() const { return content_->data.content_hash; }

Array Graph::offsets() const { return look(content_->data.graph.offsets(), 0, content_); }
Array Graph::targets() const { return look(content_->data.graph.targets(), 0, content_); }
Array Graph::weights() const { return look(content_->data.graph.weights(), 0, content_); }

Array Graph::features() const {
  const cgcn::FeatureMatrix& features = content_->data.features;
  if (features.kind() == cgcn::FeatureMatrix::Kind::kDense32)
    return look(features.dense32(), features.columns(), content_);
  if (features.kind() != cgcn::FeatureMatrix::Kind::kDense16) return {};
  return {features.dense16().data(), Type::kFloat16, features.rows(), features.columns(), content_};
}

std::array<Array, 3> Graph::sparse_features() const {
  const cgcn::FeatureMatrix& features = content_->data.features;
  if (features.kind() != cgcn::FeatureMatrix::Kind::kSparse) return {};
  return {look(features.sparse_offsets(), 0, content_), look(features.sparse_columns(), 0, content_),
          look(features.sparse_values(), 0, content_)};
}

Array Graph::labels() const {
  const cgcn::Labels& labels = content_->data.labels;
  if (labels.regression()) return look(labels.values(), 0, content_);
  if (!labels.multi_label()) return look(labels.classes(), 0, content_);
  auto values = std::make_shared<std::vector<uint8_t>>(num_nodes() * num_classes());
  for (cgcn::NodeId v = 0; v < num_nodes(); ++v)
    for (uint32_t c = 0; c < num_classes(); ++c) (*values)[uint64_t{v} * num_classes() + c] = labels.has(v, c);
  Array array = view(*values, num_classes());
  array.owner = std::move(values);
  return array;
}

Array Graph::split() const { return look(content_->data.split.span(), 0, content_); }

}  // namespace clustergcn
