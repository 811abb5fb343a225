#include "graph/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/random.h"
#include "common/threads.h"
#include "graph/row_blocks.h"

namespace cgcn {

Labels Labels::single(SharedArray<int32_t> classes, uint32_t num_classes) {
  CGCN_CHECK(num_classes > 0);
  Labels labels;
  labels.num_classes_ = num_classes;
  labels.classes_ = std::move(classes);
  return labels;
}

Labels Labels::multi(SharedArray<uint8_t> bits, uint32_t num_classes) {
  CGCN_CHECK(num_classes > 0 && bits.size() % row_bytes(num_classes) == 0);
  Labels labels;
  labels.num_classes_ = num_classes;
  labels.bits_ = std::move(bits);
  return labels;
}

Labels Labels::numbers(SharedArray<float> values) {
  CGCN_CHECK(!values.empty());
  Labels labels;
  labels.num_classes_ = 1;
  labels.values_ = std::move(values);
  return labels;
}

NodeIds NodeIds::integers(SharedArray<int64_t> ids) {
  NodeIds result;
  result.kind_ = Kind::kIntegers;
  result.integers_ = std::move(ids);
  return result;
}

NodeIds NodeIds::strings(SharedArray<uint64_t> offsets, SharedArray<char> text) {
  CGCN_CHECK(!offsets.empty() && offsets[offsets.size() - 1] == text.size());
  NodeIds result;
  result.kind_ = Kind::kStrings;
  result.offsets_ = std::move(offsets);
  result.text_ = std::move(text);
  return result;
}

std::string NodeIds::text(NodeId v) const {
  switch (kind_) {
    case Kind::kIntegers:
      return std::to_string(integers_[v]);
    case Kind::kStrings:
      return {text_.data() + offsets_[v], text_.data() + offsets_[v + 1]};
    default:
      return std::to_string(v);
  }
}

std::array<uint64_t, 3> Dataset::split_sizes() const {
  std::array<uint64_t, 3> sizes{};
  for (const uint8_t role : split)
    if (role < 3) ++sizes[role];
  return sizes;
}

uint32_t Dataset::num_graphs() const {
  return graph_ids.empty() ? 1 : *std::max_element(graph_ids.begin(), graph_ids.end()) + 1;
}

uint64_t Dataset::num_training_edges() const {
  const RowBlocks blocks(graph.offsets());
  std::vector<uint64_t> loops(blocks.count()), others(blocks.count());
  parallel_for_each_block(blocks.count(), BlockOrder::kAscending, [&](size_t i) {
    for (size_t v = blocks.begin(i); v < blocks.end(i); ++v) {
      if (role(static_cast<NodeId>(v)) != Role::kTrain) continue;
      for (const NodeId u : graph.neighbours(static_cast<NodeId>(v)))
        if (role(u) == Role::kTrain) ++(u == v ? loops : others)[i];
    }
    graph.release_rows(blocks.begin(i), blocks.end(i));
  });
  const uint64_t entries = std::accumulate(others.begin(), others.end(), uint64_t{0});
  return std::accumulate(loops.begin(), loops.end(), graph.directed() ? entries : entries / 2);
}

SharedArray<uint8_t> random_split(const Labels& labels, NodeId num_nodes, std::array<double, 3> shares, uint64_t seed,
                                  const std::vector<bool>& listed) {
  std::vector<NodeId> labelled;
  for (NodeId v = 0; v < num_nodes; ++v)
    if ((!labels.present() || labels.known(v)) && (listed.empty() || listed[v])) labelled.push_back(v);
  Random(seed, Purpose::kSplit).shuffle(std::span(labelled));
  const double total = shares[0] + shares[1] + shares[2];
  CGCN_CHECK(total > 0);
  const auto count = static_cast<double>(labelled.size());
  const auto train_end = static_cast<size_t>(std::llround(count * shares[0] / total));
  const auto validation_end = static_cast<size_t>(std::llround(count * (shares[0] + shares[1]) / total));
  std::vector<uint8_t> split(num_nodes, static_cast<uint8_t>(Role::kNone));
  for (size_t i = 0; i < labelled.size(); ++i) split[labelled[i]] = i < train_end ? 0 : i < validation_end ? 1 : 2;
  return split;
}

}  // namespace cgcn
