#include "graph/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "common/threads.h"

namespace cgcn {
namespace {

constexpr size_t kCountedRows = 8192;

// Adds up what work(v) gives for every node, block by block: the sum does not depend on threads.
template <class Sum, class Work>
Sum sum_over_nodes(NodeId n, Work&& work) {
  std::vector<Sum> partial((size_t{n} + kCountedRows - 1) / kCountedRows);
  parallel_blocks(n, kCountedRows, [&](size_t begin, size_t end) {
    for (size_t v = begin; v < end; ++v) work(static_cast<NodeId>(v), partial[begin / kCountedRows]);
  });
  Sum total;
  for (const Sum& sum : partial) total += sum;
  return total;
}

struct Alike {
  double sum = 0;
  uint64_t links = 0;
  Alike& operator+=(const Alike& other) {
    sum += other.sum;
    links += other.links;
    return *this;
  }
};

uint32_t count_labels(const Labels& labels, NodeId v) {
  uint32_t count = 0;
  for (const uint8_t byte : labels.bit_row(v)) count += static_cast<uint32_t>(std::popcount(byte));
  return count;
}

void add_overlap(const Labels& labels, NodeId u, NodeId v, Alike& alike) {
  const auto a = labels.bit_row(u), b = labels.bit_row(v);
  uint32_t common = 0, either = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    common += static_cast<uint32_t>(std::popcount(static_cast<uint8_t>(a[i] & b[i])));
    either += static_cast<uint32_t>(std::popcount(static_cast<uint8_t>(a[i] | b[i])));
    of_a += static_cast<uint32_t>(a[i]);
    of_b += static_cast<uint32_t>(b[i]);
  }
  if (of_a == 0 || of_b == 0) return;
  alike.sum += static_cast<double>(common) / either;
  ++alike.links;
}

// The root of v's tree; every second node on the way is hung higher (path halving).
NodeId find_root(std::vector<NodeId>& parents, NodeId v) {
  while (parents[v] != v) v = parents[v] = parents[parents[v]];
  return v;
}

}  // namespace

DegreeStatistics degree_statistics(const CsrGraph& graph) {
  DegreeStatistics result;
  const NodeId n = graph.num_nodes();
  if (n == 0) return result;
  std::vector<uint64_t> degrees(n);
  for (NodeId v = 0; v < n; ++v) {
    degrees[v] = graph.degree(v);
    const size_t bin = std::bit_width(degrees[v]);
    if (bin >= result.histogram.size()) result.histogram.resize(bin + 1);
    ++result.histogram[bin];
  }
  const auto [least, largest] = std::minmax_element(degrees.begin(), degrees.end());
  result.least = *least;
  result.largest = *largest;
  result.mean = static_cast<double>(graph.num_entries()) / n;
  std::nth_element(degrees.begin(), degrees.begin() + n / 2, degrees.end());
  result.median = degrees[n / 2];
  return result;
}

ComponentStatistics component_statistics(const CsrGraph& graph) {
  const NodeId n = graph.num_nodes();
  std::vector<NodeId> parents(n);
  std::iota(parents.begin(), parents.end(), NodeId{0});
  for (NodeId v = 0; v < n; ++v)
    for (const NodeId u : graph.neighbours(v)) {
      const NodeId a = find_root(parents, v), b = find_root(parents, u);
      if (a != b) parents[std::max(a, b)] = std::min(a, b);
    }
  std::vector<NodeId> sizes(n);
  for (NodeId v = 0; v < n; ++v) ++sizes[find_root(parents, v)];
  ComponentStatistics result;
  for (const NodeId size : sizes) {
    if (size > 0) ++result.count;
    if (size == 1) ++result.isolated;
    result.largest = std::max<uint64_t>(result.largest, size);
  }
  return result;
}

namespace {

LabelStatistics number_statistics(const Labels& labels) {
  LabelStatistics result;
  double sum = 0;
  for (const float value : labels.values()) {
    if (std::isnan(value)) continue;
    result.lowest = result.labelled == 0 ? value : std::min(result.lowest, value);
    result.highest = result.labelled == 0 ? value : std::max(result.highest, value);
    sum += value;
    ++result.labelled;
  }
  if (result.labelled > 0) result.mean = sum / static_cast<double>(result.labelled);
  return result;
}

}  // namespace

LabelStatistics label_statistics(const Labels& labels, NodeId num_nodes) {
  LabelStatistics result;
  if (!labels.present()) return result;
  if (labels.regression()) return number_statistics(labels);
  result.class_sizes.resize(labels.num_classes());
  uint64_t total = 0;
  for (NodeId v = 0; v < num_nodes; ++v) {
    uint64_t count = 0;
    if (labels.multi_label()) {
      count = count_labels(labels, v);
      for (uint32_t c = 0; c < labels.num_classes() && count > 0; ++c)
        result.class_sizes[c] += labels.has(v, c) ? 1 : 0;
    } else if (labels.class_of(v) >= 0) {
      count = 1;
      ++result.class_sizes[static_cast<size_t>(labels.class_of(v))];
    }
    if (count == 0) continue;
    result.least = result.labelled == 0 ? count : std::min(result.least, count);
    result.most = std::max(result.most, count);
    ++result.labelled;
    total += count;
  }
  if (result.labelled > 0) result.mean = static_cast<double>(total) / static_cast<double>(result.labelled);
  return result;
}

double edge_homophily(const CsrGraph& graph, const Labels& labels) {
  if (!labels.present() || labels.regression()) return -1;
  const auto alike = sum_over_nodes<Alike>(graph.num_nodes(), [&](NodeId v, Alike& sum) {
    for (const NodeId u : graph.neighbours(v)) {
      if (u == v) continue;
      if (labels.multi_label()) {
        add_overlap(labels, u, v, sum);
      } else if (labels.class_of(u) >= 0 && labels.class_of(v) >= 0) {
        sum.sum += labels.class_of(u) == labels.class_of(v) ? 1 : 0;
        ++sum.links;
      }
    }
  });
  return alike.links == 0 ? -1 : alike.sum / static_cast<double>(alike.links);
}

}  // namespace cgcn
