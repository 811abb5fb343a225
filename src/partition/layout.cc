#include "partition/layout.h"

#include <algorithm>
#include <numeric>

#include "common/interrupt.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/threads.h"

namespace cgcn {
namespace {

constexpr size_t kLaidOutRows = 512;  // rows a thread takes at a time
constexpr size_t kMostReadNodes = size_t{1} << 16;
constexpr size_t kMostChunk = size_t{32} << 20;  // bytes; one is written while the next is gathered
constexpr uint64_t kRowTables = 16;              // bytes per row of a run, for where it begins and its length

// Counting sort of the nodes by cluster.
void sort_by_cluster(std::span<const NodeId> nodes, const Assignment& assignment, std::span<NodeId> order,
                     std::span<NodeId> cluster_offsets) {
  std::fill(cluster_offsets.begin(), cluster_offsets.end(), 0);
  for (const uint32_t cluster : assignment.clusters) ++cluster_offsets[size_t{cluster} + 1];
  std::partial_sum(cluster_offsets.begin(), cluster_offsets.end(), cluster_offsets.begin());
  std::vector<NodeId> next(cluster_offsets.begin(), cluster_offsets.end() - 1);
  for (size_t i = 0; i < nodes.size(); ++i) order[next[assignment.clusters[i]]++] = nodes[i];
}

// Writes the arrays in the layout's order. One that may be mapped as a whole is read in that order, a chunk at a time.
// A larger one would be read page by page from anywhere on the disk: it is read in the store's order instead, once for
// each run of rows that memory holds.
class LayoutWriter {
 public:
  LayoutWriter(const Store& store, std::span<const NodeId> order, uint64_t memory, StoreWriter& writer)
      : store_(store),
        data_(store.dataset()),
        order_(order),
        position_(data_.num_nodes(), kNoNode),
        writer_(writer),
        memory_(memory),
        progress_("layout", order.size() * 2) {
    for (size_t r = 0; r < order_.size(); ++r) position_[order_[r]] = static_cast<NodeId>(r);
  }

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
  // Rows [begin, end) of the layout, and how to meet each of them once, on all threads.
  struct Run {
    const LayoutWriter& writer;
    size_t begin, end;
    size_t read_nodes;  // of the store in its order, between two looks at what is mapped; 0: in the layout's order

    size_t size() const { return end - begin; }
    // Calls use(row of the run, node).
    template <class Use>
    void for_each(Use&& use) const {
      if (read_nodes == 0) {
        parallel_blocks(size(), kLaidOutRows, [&](size_t first, size_t last) {
          for (size_t r = first; r < last; ++r) use(r, writer.order_[begin + r]);
        });
        return;
      }
      for (size_t node = 0; node < writer.position_.size(); node += read_nodes) {
        throw_if_interrupted();
        parallel_blocks(std::min(read_nodes, writer.position_.size() - node), kLaidOutRows,
                        [&](size_t first, size_t last) {
                          for (size_t v = node + first; v < node + last; ++v)
                            if (const size_t r = size_t{writer.position_[v]} - begin; r < size())
                              use(r, static_cast<NodeId>(v));
                        });
        writer.release_pages();
      }
    }
  };

  void release_pages() const {
    if (memory_figures().file_backed > memory_ / 4) store_.release_pages();
  }

  // Calls use(run) for all rows, in runs as long as their bytes, as size_of(node) tells, and the array's size allow.
  template <class SizeOf, class Use>
  void for_each_run(uint64_t array_bytes, SizeOf&& size_of, Use&& use) {
    const bool in_store_order = array_bytes > memory_ / 4;
    const uint64_t most = in_store_order ? memory_ / 6 : std::min<uint64_t>(memory_ / 16, kMostChunk);
    const uint64_t bytes_per_node = std::max<uint64_t>(array_bytes / std::max<size_t>(position_.size(), 1), 1);
    const size_t read_nodes =
        in_store_order ? std::clamp<size_t>(memory_ / 16 / bytes_per_node, kLaidOutRows, kMostReadNodes) : 0;
    for (size_t begin = 0; begin < order_.size();) {
      throw_if_interrupted();
      size_t end = begin;
      for (uint64_t bytes = 0; end < order_.size() && (end == begin || bytes < most);)
        bytes += size_of(order_[end++]) + kRowTables;
      use(Run{*this, begin, end, read_nodes});
      begin = end;
    }
    release_pages();
  }

  template <class T>
  void gather_array(const std::string& name, std::span<const T> values, uint64_t columns) {
    const size_t width = std::max<uint64_t>(columns, 1);
    ArrayWriter array = writer_.begin_array<T>(name, columns);
    for_each_run(
        values.size_bytes(), [&](NodeId) { return width * sizeof(T); },
        [&](const Run& run) {
          T* out = next_chunk<T>(run.size() * width);
          run.for_each(
              [&](size_t r, NodeId v) { std::copy_n(values.data() + size_t{v} * width, width, out + r * width); });
          array.append_behind(std::span<const T>(out, run.size() * width));
        });
    writer_.end_array(name, array);
  }

  // Rows of varying length: offsets, and the arrays that they cut.
  template <class T>
  void gather_rows(const std::string& name, std::span<const uint64_t> offsets, std::span<const T> values) {
    const auto length = [&](NodeId v) { return offsets[size_t{v} + 1] - offsets[v]; };
    ArrayWriter array = writer_.begin_array<T>(name);
    std::vector<size_t> starts;
    for_each_run(
        values.size_bytes(), [&](NodeId v) { return length(v) * sizeof(T); },
        [&](const Run& run) {
          starts.reserve(run.size() + 1);
          starts.assign(1, 0);
          for (size_t r = run.begin; r < run.end; ++r) starts.push_back(starts.back() + length(order_[r]));
          T* out = next_chunk<T>(starts.back());
          run.for_each(
              [&](size_t r, NodeId v) { std::copy_n(values.data() + offsets[v], length(v), out + starts[r]); });
          array.append_behind(std::span<const T>(out, starts.back()));
        });
    writer_.end_array(name, array);
  }
  // The other one is being written.
  template <class T>
  T* next_chunk(size_t size) {
    Buffer<std::byte>& chunk = chunks_[turn_ ^= 1];
    chunk.reserve_discarding(size * sizeof(T));
    return reinterpret_cast<T*>(chunk.data());
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
  size_t map_row(NodeId v, NodeId* targets, float* weights) const;

  void write_features() {
    const FeatureMatrix& features = data_.features;
    if (features.kind() == FeatureMatrix::Kind::kDense32) {
      gather_array<float>("features", features.dense32(), features.columns());
    } else if (features.kind() == FeatureMatrix::Kind::kDense16) {
      gather_array<Half>("features", features.dense16(), features.columns());
    } else if (features.kind() == FeatureMatrix::Kind::kDenseBFloat16) {
      gather_array<BFloat16>("features", features.dense_bfloat16(), features.columns());
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
  Buffer<NodeId> position_;  // the inverse of order_; kNoNode if a node is not in the layout
  StoreWriter& writer_;
  const uint64_t memory_;
  Progress progress_;
  Buffer<std::byte> chunks_[2];
  size_t turn_ = 0;
};

// One row of the store as a row of the layout: neighbours that are not in the layout fall away. Returns its length.
size_t LayoutWriter::map_row(NodeId v, NodeId* targets, float* weights) const {
  const auto neighbours = data_.graph.neighbours(v);
  size_t length = 0;
  if (weights == nullptr) {
    for (const NodeId u : neighbours)
      if (position_[u] != kNoNode) targets[length++] = position_[u];
    std::sort(targets, targets + length);
    return length;
  }
  const auto given = data_.graph.neighbour_weights(v);
  thread_local std::vector<std::pair<NodeId, float>> row;
  row.clear();
  for (size_t k = 0; k < neighbours.size(); ++k)
    if (position_[neighbours[k]] != kNoNode) row.emplace_back(position_[neighbours[k]], given[k]);
  std::sort(row.begin(), row.end());
  for (const auto& [target, weight] : row) {
    targets[length] = target;
    weights[length++] = weight;
  }
  return length;
}

void LayoutWriter::write_adjacency() {
  const CsrGraph& graph = data_.graph;
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
  std::vector<size_t> starts;  // of the run's rows: room for all neighbours
  std::vector<EdgeOffset> ends;
  const size_t entry_bytes = sizeof(NodeId) + (weights ? sizeof(float) : 0);
  for_each_run(
      graph.num_entries() * entry_bytes, [&](NodeId v) { return graph.degree(v) * entry_bytes; },
      [&](const Run& run) {
        Chunk& chunk = chunks[turn ^= 1];  // the other one is being written
        starts.reserve(run.size() + 1);
        starts.assign(1, 0);
        for (size_t r = run.begin; r < run.end; ++r) starts.push_back(starts.back() + graph.degree(order_[r]));
        ends.assign(run.size(), 0);
        chunk.targets.reserve_discarding(starts.back());
        if (weights) chunk.weights.reserve_discarding(starts.back());
        run.for_each([&](size_t r, NodeId v) {
          ends[r] = map_row(v, chunk.targets.data() + starts[r], weights ? chunk.weights.data() + starts[r] : nullptr);
        });
        size_t kept = 0;  // rows are moved together
        for (size_t r = 0; r < run.size(); ++r) {
          const NodeId* row = chunk.targets.data() + starts[r];
          const size_t length = ends[r];
          loops += std::binary_search(row, row + length, static_cast<NodeId>(run.begin + r)) ? 1 : 0;
          std::copy_n(row, length, chunk.targets.data() + kept);
          if (weights) std::copy_n(chunk.weights.data() + starts[r], length, chunk.weights.data() + kept);
          kept += length;
          ends[r] = total + kept;
        }
        total += kept;
        targets.append_behind(std::span<const NodeId>(chunk.targets.data(), kept));
        if (weights) weights->append_behind(std::span<const float>(chunk.weights.data(), kept));
        offsets.append(std::span<const EdgeOffset>(ends));
        progress_.advance(run.size());
      });
  writer_.end_array("adjacency_offsets", offsets);
  writer_.end_array("adjacency_targets", targets);
  if (weights) writer_.end_array("adjacency_weights", *weights);
  const uint64_t edges = graph.directed() ? total : (total - loops) / 2 + loops;
  writer_.declare_graph(static_cast<NodeId>(order_.size()), total, edges, graph.directed(), graph.weighted());
}

// What the user calls the nodes. If that is their number in the store, those numbers are the layout's ids.
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

ClusterLayout open_layout(std::shared_ptr<const Store> files, NodeId graph_nodes) {
  const Store& partition = *files;
  ClusterLayout layout{.data = partition.dataset(),
                       .order = partition.array<NodeId>("order"),
                       .cluster_offsets = partition.array<NodeId>("cluster_offsets"),
                       .path = partition.path(),
                       .files = files};
  const NodeId rows = layout.data.num_nodes();
  const auto& offsets = layout.cluster_offsets;
  const auto damaged = [&](const char* file) {
    return Error("the partition is damaged: it does not fit the other arrays", (partition.path() / file).string(),
                 "remove the folder and partition again");
  };
  if (layout.order.size() != rows ||
      std::any_of(layout.order.begin(), layout.order.end(), [&](NodeId v) { return v >= graph_nodes; }))
    throw damaged("order.npy");
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
