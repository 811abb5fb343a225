#include "graph/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "common/random.h"
#include "graph/graph_builder.h"

namespace cgcn {
namespace {

struct Sample {
  CsrGraph graph;
  Labels single, multi;
  std::vector<int32_t> classes;
  std::vector<std::set<uint32_t>> label_sets;
};

Sample random_sample(uint32_t trial) {
  Random random(trial, Purpose::kTest);
  const NodeId n = 1 + random.below(20);
  EdgeList edges;
  for (uint32_t e = random.below(30); e > 0; --e) edges.add(random.below(n), random.below(n));
  Sample sample;
  sample.graph =
      build_graph(n, edges, {.directed = random.below(2) == 1, .keep_self_loops = random.below(2) == 1}, nullptr);
  const uint32_t num_classes = 9;
  std::vector<uint8_t> bits(n * Labels::row_bytes(num_classes));
  for (NodeId v = 0; v < n; ++v) {
    sample.classes.push_back(static_cast<int32_t>(random.below(4)) - 1);
    std::set<uint32_t> labels;
    for (uint32_t c = 0; c < num_classes && random.below(4) > 0; ++c)
      if (random.below(2) == 1) labels.insert(c);
    for (const uint32_t c : labels) bits[v * 2 + c / 8] |= static_cast<uint8_t>(1u << (c % 8));
    sample.label_sets.push_back(labels);
  }
  sample.single = Labels::single(sample.classes, 3);
  sample.multi = Labels::multi(bits, num_classes);
  return sample;
}

std::vector<std::vector<bool>> reachability(const CsrGraph& graph) {  // Warshall, direction ignored
  const NodeId n = graph.num_nodes();
  std::vector<std::vector<bool>> reach(n, std::vector<bool>(n));
  for (NodeId v = 0; v < n; ++v) {
    reach[v][v] = true;
    for (const NodeId u : graph.neighbours(v)) reach[u][v] = reach[v][u] = true;
  }
  for (NodeId k = 0; k < n; ++k)
    for (NodeId i = 0; i < n; ++i)
      for (NodeId j = 0; j < n; ++j)
        if (reach[i][k] && reach[k][j]) reach[i][j] = true;
  return reach;
}

TEST(Statistics, ComponentsEqualBruteForce) {
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const CsrGraph graph = random_sample(trial).graph;
    const auto reach = reachability(graph);
    std::set<std::vector<bool>> components(reach.begin(), reach.end());
    uint64_t largest = 0, isolated = 0;
    for (const auto& component : components) {
      const auto size = static_cast<uint64_t>(std::count(component.begin(), component.end(), true));
      largest = std::max(largest, size);
      isolated += size == 1 ? 1 : 0;
    }
    const ComponentStatistics found = component_statistics(graph);
    EXPECT_EQ(found.count, components.size()) << trial;
    EXPECT_EQ(found.largest, largest) << trial;
    EXPECT_EQ(found.isolated, isolated) << trial;
  }
}

TEST(Statistics, DegreesEqualBruteForce) {
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const CsrGraph graph = random_sample(trial).graph;
    std::vector<uint64_t> degrees;
    for (NodeId v = 0; v < graph.num_nodes(); ++v) degrees.push_back(graph.neighbours(v).size());
    std::sort(degrees.begin(), degrees.end());
    const DegreeStatistics found = degree_statistics(graph);
    EXPECT_EQ(found.least, degrees.front());
    EXPECT_EQ(found.median, degrees[degrees.size() / 2]);
    EXPECT_EQ(found.largest, degrees.back());
    uint64_t counted = 0;
    for (size_t b = 0; b < found.histogram.size(); ++b) {
      const uint64_t from = b == 0 ? 0 : uint64_t{1} << (b - 1), end = uint64_t{1} << b;
      EXPECT_EQ(found.histogram[b],
                static_cast<uint64_t>(
                    std::count_if(degrees.begin(), degrees.end(), [&](uint64_t d) { return d >= from && d < end; })));
      counted += found.histogram[b];
    }
    EXPECT_EQ(counted, degrees.size());
    EXPECT_GT(found.histogram.back(), 0u);
  }
}

TEST(Statistics, HomophilyEqualsBruteForce) {
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const Sample sample = random_sample(trial);
    double same = 0, overlap = 0, single_links = 0, multi_links = 0;
    for (NodeId v = 0; v < sample.graph.num_nodes(); ++v)
      for (const NodeId u : sample.graph.neighbours(v)) {
        if (u == v) continue;
        if (sample.classes[u] >= 0 && sample.classes[v] >= 0) {
          same += sample.classes[u] == sample.classes[v] ? 1 : 0;
          ++single_links;
        }
        const auto &a = sample.label_sets[u], &b = sample.label_sets[v];
        if (a.empty() || b.empty()) continue;
        std::set<uint32_t> either(a);
        either.insert(b.begin(), b.end());
        const double common = static_cast<double>(a.size() + b.size() - either.size());
        overlap += common / static_cast<double>(either.size());
        ++multi_links;
      }
    EXPECT_DOUBLE_EQ(edge_homophily(sample.graph, sample.single), single_links == 0 ? -1 : same / single_links)
        << trial;
    EXPECT_NEAR(edge_homophily(sample.graph, sample.multi), multi_links == 0 ? -1 : overlap / multi_links, 1e-12)
        << trial;
    EXPECT_EQ(edge_homophily(sample.graph, {}), -1);
  }
}

TEST(Statistics, LabelsEqualBruteForce) {
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const Sample sample = random_sample(trial);
    std::vector<uint64_t> sizes(9);
    uint64_t labelled = 0, least = 99, most = 0, total = 0;
    for (const auto& labels : sample.label_sets) {
      for (const uint32_t c : labels) ++sizes[c];
      if (labels.empty()) continue;
      ++labelled;
      total += labels.size();
      least = std::min<uint64_t>(least, labels.size());
      most = std::max<uint64_t>(most, labels.size());
    }
    const LabelStatistics found = label_statistics(sample.multi, sample.graph.num_nodes());
    EXPECT_EQ(found.class_sizes, sizes);
    EXPECT_EQ(found.labelled, labelled);
    EXPECT_EQ(found.least, labelled == 0 ? 0 : least);
    EXPECT_EQ(found.most, most);
    if (labelled > 0) {
      EXPECT_DOUBLE_EQ(found.mean, static_cast<double>(total) / static_cast<double>(labelled));
    }
    const LabelStatistics single = label_statistics(sample.single, sample.graph.num_nodes());
    EXPECT_EQ(single.labelled, static_cast<uint64_t>(std::count_if(sample.classes.begin(), sample.classes.end(),
                                                                   [](int32_t c) { return c >= 0; })));
  }
}

}  // namespace
}  // namespace cgcn
