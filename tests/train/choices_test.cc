// What the recipe `auto` counts and chooses.
#include "train/choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "graph/graph_builder.h"
#include "random_dataset.h"
#include "train/standardise.h"

namespace cgcn {
namespace {

// A graph of the middle size: 60 % of its nodes are labelled, dense features, all in one graph.
GraphCounts usual() {
  GraphCounts counts;
  counts.nodes = 100'000;
  counts.edges = 1'000'000;
  counts.training = counts.labelled = 60'000;
  counts.classes = 10;
  counts.has_validation = true;
  counts.joining_edges = 500'000;
  counts.training_edges = 300'000;
  counts.homophily = 0.8;
  counts.features = FeatureMatrix::Kind::kDense32;
  counts.columns = 100;
  return counts;
}

using Values = std::map<std::string, std::string>;

// Of each network that is worth a trial, the first being what the counts speak for.
std::vector<Values> candidates(const GraphCounts& counts, const std::set<std::string>& set = {},
                               const RunOptions& known = {}) {
  std::vector<Values> all;
  for (const Candidate& candidate :
       candidate_settings(counts, known, [&](const std::string& name) { return set.count(name) > 0; })) {
    Values& values = all.emplace_back();
    for (const Choice& choice : candidate.choices) {
      EXPECT_FALSE(choice.reason.empty()) << choice.option;
      EXPECT_TRUE(values.emplace(choice.option, choice.value).second) << choice.option << " is chosen twice";
    }
  }
  return all;
}

Values chosen(const GraphCounts& counts, const std::set<std::string>& set = {}, const RunOptions& known = {}) {
  return candidates(counts, set, known).front();
}

TEST(Choices, TransductiveWhereTrainingNodesHaveOtherNeighbours) {
  GraphCounts counts = usual();
  EXPECT_EQ(chosen(counts).at("transductive"), "true");
  counts.joining_edges = 0;  // the test graphs are others
  EXPECT_EQ(chosen(counts).count("transductive"), 0u);
}

TEST(Choices, WhatIsSetByHandIsLeftAlone) {
  for (const auto& [option, value] : chosen(usual())) EXPECT_EQ(chosen(usual(), {option}).count(option), 0u) << option;
  RunOptions rows;
  rows.train.normalise_rows = true;
  GraphCounts counts = usual();
  counts.uneven_columns = 0.5;
  EXPECT_EQ(chosen(counts).at("standardise"), "true");
  EXPECT_EQ(chosen(counts, {"normalise-rows"}, rows).count("standardise"), 0u);  // which it contradicts
  EXPECT_EQ(chosen(counts, {"layer-norm"}).count("batch-norm"), 0u);
}

TEST(Choices, FewLabelsOfAlikeNeighboursAreSmoothed) {
  GraphCounts counts = usual();
  EXPECT_EQ(chosen(counts).count("weight-decay"), 0u);
  counts.training = counts.labelled = 200;
  EXPECT_EQ(chosen(counts).at("normalisation"), "symmetric");
  EXPECT_GT(std::stod(chosen(counts).at("weight-decay")), 0);
  counts.homophily = 0.2;  // neighbours are of other classes: a node's own features must count
  EXPECT_EQ(chosen(counts).count("normalisation"), 0u);
  counts.homophily = -1;  // no two known nodes are neighbours: they may be of other classes
  EXPECT_EQ(chosen(counts).count("normalisation"), 0u);
}

TEST(Choices, GraphsWithoutFeaturesGetKipfsModel) {
  GraphCounts counts = usual();
  counts.nodes = counts.columns = 3000;
  counts.features = FeatureMatrix::Kind::kIdentity;
  EXPECT_EQ(chosen(counts).at("conv"), "plain");
  EXPECT_EQ(chosen(counts).at("layers"), "2");
  counts.training = counts.labelled = 150;  // which are rarely near
  EXPECT_EQ(chosen(counts).at("conv"), "plain");
  EXPECT_EQ(chosen(counts).at("layers"), "4");
  EXPECT_EQ(chosen(counts).count("schedule"), 0u);
  EXPECT_EQ(chosen(counts).at("first-layer"), "batch");
  EXPECT_EQ(chosen(counts, {"dropout-place"}).count("first-layer"), 0u);  // which it may contradict
  for (const double homophily : {-1.0, 0.2}) {                            // labels from far say little, or nobody knows
    counts.homophily = homophily;
    EXPECT_EQ(chosen(counts).at("conv"), "plain");
    EXPECT_EQ(chosen(counts).at("layers"), "2");
  }
  counts.homophily = 0;  // neighbours are of other classes, which the concatenated form can learn
  EXPECT_EQ(chosen(counts).count("conv"), 0u);
  counts.homophily = 0.8;
  counts.nodes = counts.columns = 300'000;  // clusters
  EXPECT_EQ(chosen(counts).at("conv"), "plain");
  EXPECT_EQ(chosen(counts).count("first-layer"), 0u);
  counts.training = counts.labelled = 100'000;
  EXPECT_EQ(chosen(counts).count("conv"), 0u);
  counts.nodes = counts.columns = 3000;
  counts.multi_label = true;
  EXPECT_EQ(chosen(counts).count("conv"), 0u);
}

TEST(Choices, WordsHaveRowsOfOneLength) {
  GraphCounts counts = usual();
  counts.nodes = 20'000;
  counts.features = FeatureMatrix::Kind::kSparse;
  counts.columns = 1000;
  counts.entries_per_row = 60;
  EXPECT_EQ(chosen(counts).at("normalise-rows"), "true");
  EXPECT_EQ(chosen(counts).at("layers"), "2");
  EXPECT_EQ(chosen(counts).at("batch-norm"), "true");
  EXPECT_EQ(chosen(counts).count("input-projection"), 0u);
  EXPECT_EQ(chosen(counts, {"standardise"}).count("normalise-rows"), 0u);  // which it contradicts
  GraphCounts many = counts, signs = counts, large = counts;
  many.columns = 6000;
  EXPECT_EQ(chosen(many).at("input-projection"), "true");
  EXPECT_EQ(chosen(many).count("batch-norm"), 0u);
  signs.negative_entries = true;  // a row may sum to nothing
  EXPECT_EQ(chosen(signs).count("normalise-rows"), 0u);
  large.nodes = 50'000'000;  // whose features should not be copied
  EXPECT_EQ(chosen(large).count("normalise-rows"), 0u);
  counts.training = counts.labelled = 200;
  EXPECT_EQ(chosen(counts).at("normalise-rows"), "true");
  EXPECT_EQ(chosen(counts).at("conv"), "plain");
}

TEST(Choices, NeighboursLabelsAreSpreadWhereTheyAreAlike) {
  GraphCounts counts = usual();
  EXPECT_EQ(chosen(counts).at("smooth"), "both");
  const auto not_with = [](auto&& change) {
    GraphCounts changed = usual();
    change(changed);
    return chosen(changed).count("smooth") == 0;
  };
  EXPECT_TRUE(not_with([](GraphCounts& c) { c.homophily = 0.05; }));
  EXPECT_TRUE(not_with([](GraphCounts& c) { c.joining_edges = 0; }));  // no test node has a labelled neighbour
  EXPECT_TRUE(not_with([](GraphCounts& c) { c.has_validation = false; }));
  EXPECT_TRUE(not_with([](GraphCounts& c) { c.regression = true; }));
  EXPECT_TRUE(not_with([](GraphCounts& c) { c.nodes = 100'000'000; }));
  EXPECT_FALSE(not_with([](GraphCounts& c) { c.multi_label = true, c.homophily = -1; }));
  RunOptions tight;
  tight.memory.memory = "200M";
  EXPECT_EQ(chosen(counts, {"memory"}, tight).count("smooth"), 1u);  // which is the same in any memory
}

TEST(Choices, ThresholdsOfLabelsAreChosenOnValidation) {
  GraphCounts counts = usual();
  EXPECT_EQ(chosen(counts).count("thresholds"), 0u);
  counts.multi_label = true;
  EXPECT_EQ(chosen(counts).at("thresholds"), "validation");
  counts.has_validation = false;
  EXPECT_EQ(chosen(counts).count("thresholds"), 0u);
}

TEST(Choices, SmallGraphsAreOneBatchAndLargeOnesHaveFewerEpochs) {
  GraphCounts small = usual(), large = usual();
  small.nodes = 5000;
  EXPECT_EQ(chosen(small).at("method"), "full-batch");
  EXPECT_EQ(chosen(small).count("parts"), 0u);
  EXPECT_EQ(chosen(small, {"parts"}).count("method"), 0u);
  RunOptions tight;
  tight.memory.memory = "200M";
  EXPECT_EQ(chosen(small, {"memory"}, tight).count("method"), 0u);
  large.nodes = 5'000'000;
  EXPECT_EQ(chosen(large).at("parts"), "5000");
  EXPECT_LT(std::stoul(chosen(large).at("epochs")), std::stoul(chosen(small).at("epochs")));
  EXPECT_EQ(chosen(large, {"epochs"}).count("epochs"), 0u);
}

// A step that takes several batches, as under mpirun, is one step.
TEST(Choices, EpochsAreAsManyAsTheStepsNeed) {
  RunOptions eight;
  eight.train.batches_per_step = 8;
  const uint64_t alone = std::stoul(chosen(usual()).at("epochs")),
                 together = std::stoul(chosen(usual(), {}, eight).at("epochs"));
  EXPECT_EQ(alone, 60u);  // of 10 batches
  EXPECT_EQ(together, 200u);
}

TEST(Choices, LayersAreLeftAloneIfEachHasItsFanout) {
  GraphCounts counts = usual();
  counts.features = FeatureMatrix::Kind::kSparse;
  counts.columns = 1000;
  EXPECT_EQ(chosen(counts).at("layers"), "2");
  EXPECT_EQ(chosen(counts, {"fanout"}).count("layers"), 0u);
}

TEST(Choices, AreValuesThatTheOptionsTake) {
  for (const auto features :
       {FeatureMatrix::Kind::kDense16, FeatureMatrix::Kind::kSparse, FeatureMatrix::Kind::kIdentity})
    for (const uint64_t nodes : {1u, 30u, 4000u, 200'000u})
      for (const double share : {0.001, 0.9})
        for (const bool multi_label : {false, true}) {
          GraphCounts counts = usual();
          counts.features = features;
          counts.nodes = nodes;
          counts.multi_label = multi_label;
          counts.training = counts.labelled = std::max<uint64_t>(1, static_cast<uint64_t>(share * double(nodes)));
          RunOptions options;
          OptionList list;
          options.list_options(list);
          for (const Values& values : candidates(counts))
            for (const auto& [name, value] : values) EXPECT_NO_THROW(list.set(name, value, "test")) << name;
        }
  GraphCounts nothing = usual();
  nothing.labelled = 0;
  EXPECT_TRUE(chosen(nothing).empty());
}

TEST(Choices, NetworksAreTriedWhereValidationCanTellThemApart) {
  GraphCounts counts = usual();
  const std::vector<Values> all = candidates(counts);
  EXPECT_GT(all.size(), 3u);
  EXPECT_EQ(std::set<Values>(all.begin(), all.end()).size(), all.size());  // no two are the same
  for (const Values& values : all) {
    EXPECT_EQ(values.at("transductive"), "true");  // which does not depend on the network
    EXPECT_EQ(values.at("epochs"), all[0].at("epochs"));
  }
  GraphCounts small = usual();
  small.nodes = 20'000;
  EXPECT_EQ(chosen(small).at("method"), "full-batch");
  EXPECT_EQ(candidates(small).back().count("method"), 0u);  // clusters are worth a trial, too
  EXPECT_EQ(candidates(small).back().at("parts"), "20");
  EXPECT_EQ(candidates(small).back().count("batch-norm"), 0u);
  small.nodes = 2000;  // too few to be cut
  EXPECT_EQ(candidates(small).back().at("method"), "full-batch");
  GraphCounts words = usual();  // the first has two layers already
  words.features = FeatureMatrix::Kind::kSparse;
  words.columns = 1000;
  EXPECT_EQ(candidates(words).size() + 1, all.size());
  counts.training = counts.labelled = 200;
  EXPECT_GT(candidates(counts).size(), 1u);
  const auto tries = [](auto&& change) {
    GraphCounts changed = usual();
    change(changed);
    return candidates(changed).size() > 1;
  };
  EXPECT_TRUE(tries([](GraphCounts& c) { c.nodes = 2000; }));
  EXPECT_TRUE(tries([](GraphCounts& c) { c.regression = true; }));
  EXPECT_FALSE(tries([](GraphCounts& c) { c.has_validation = false; }));
  EXPECT_FALSE(tries([](GraphCounts& c) { c.nodes = 3'000'000; }));
  EXPECT_FALSE(tries([](GraphCounts& c) { c.edges = 100'000'000; }));
  EXPECT_FALSE(tries([](GraphCounts& c) { c.features = FeatureMatrix::Kind::kIdentity; }));
  RunOptions few_epochs;
  few_epochs.train.epochs = 20;
  EXPECT_EQ(candidates(usual(), {"epochs"}, few_epochs).size(), 1u);
  RunOptions tight;
  tight.memory.memory = "2G";
  EXPECT_EQ(candidates(usual(), {"memory"}, tight).size(), 1u);
  EXPECT_EQ(trial_epochs(200), 60u);
  EXPECT_EQ(trial_epochs(4'000'000'000), 60u);
  RunOptions sampled;
  sampled.method.method = Method::kGraphSage;
  EXPECT_EQ(candidates(usual(), {"method"}, sampled).size(), 1u);
}

bool any_has(const std::vector<Values>& all, const std::string& option, const std::string& value) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Values& values) { return values.count(option) > 0 && values.at(option) == value; });
}

TEST(Choices, NeighboursAreAddedUpInATrialWhereDegreesTellLabels) {
  GraphCounts counts = usual();
  counts.told_by_degree = 0.05;
  EXPECT_FALSE(any_has(candidates(counts), "normalisation", "sum"));
  counts.told_by_degree = 0.3;
  EXPECT_TRUE(any_has(candidates(counts), "normalisation", "sum"));
  EXPECT_TRUE(any_has(candidates(counts), "input-normalisation", "sum"));
  EXPECT_EQ(chosen(counts).count("normalisation"), 0u);
  EXPECT_FALSE(any_has(candidates(counts, {"input-normalisation"}), "normalisation", "sum"));
  counts.features = FeatureMatrix::Kind::kIdentity;
  for (const double homophily : {0.0, 0.8}) {
    counts.homophily = homophily;
    counts.nodes = 3000;
    EXPECT_EQ(candidates(counts).size(), 2u);
    EXPECT_TRUE(any_has(candidates(counts), "normalisation", "sum"));
    EXPECT_FALSE(any_has({candidates(counts)[1]}, "conv", "plain"));
  }
}

TEST(Choices, ManyColumnsOfFewNodesAreStronglyRegularised) {
  GraphCounts counts = usual();
  counts.nodes = 3000;
  counts.training = counts.labelled = 1200;
  counts.columns = 1200;
  EXPECT_EQ(chosen(counts).count("weight-decay"), 0u);
  EXPECT_FALSE(any_has(candidates(counts), "weight-decay", "0.01"));
  counts.columns = 1201;
  EXPECT_EQ(chosen(counts).at("weight-decay"), "0.01");
  EXPECT_EQ(chosen(counts).at("layers"), "2");
  EXPECT_EQ(chosen(counts, {"residual"}).count("layers"), 0u);
  EXPECT_EQ(chosen(counts, {"weight-decay"}).count("decay-scope"), 0u);
  EXPECT_EQ(candidates(counts)[1].count("weight-decay"), 0u);  // validation may prefer what it is otherwise
  counts.features = FeatureMatrix::Kind::kSparse;              // words
  EXPECT_EQ(chosen(counts).at("weight-decay"), "0.0005");
}

TEST(Choices, WeightsOfClassesAreNotSmoothedAway) {
  RunOptions weighted;
  weighted.train.class_weights = "balanced";
  for (const Values& values : candidates(usual(), {"class-weights"}, weighted)) EXPECT_EQ(values.count("smooth"), 0u);
}

// Two classes, or values, and nodes of three degrees.
TEST(Choices, WhatDegreesTellIsTheCorrelationWithLabels) {
  Dataset data = test::random_dataset(1);
  const NodeId n = 600;
  EdgeList edges;
  for (NodeId v = 0; v < n; v += 4)
    for (NodeId u = 1; u <= (v % 8 == 0 ? 3u : 1u); ++u) edges.add(v, v + u);
  data.graph = build_graph(n, edges, {}, nullptr);
  data.split = std::vector<uint8_t>(n, 0);
  data.features = FeatureMatrix::dense(std::vector<float>(n, 1.0f), 1);
  std::vector<int32_t> by_degree(n), by_number(n);
  std::vector<float> values(n), others(n);
  std::vector<double> degrees(n);
  for (NodeId v = 0; v < n; ++v) {
    degrees[v] = std::log1p(static_cast<double>(data.graph.degree(v)));
    by_degree[v] = data.graph.degree(v) == 3 ? 1 : 0;
    by_number[v] = v < n / 2 ? 1 : 0;
    values[v] = static_cast<float>(1000 - 50 * degrees[v]);
    others[v] = static_cast<float>(degrees[v] + (v % 7));
  }
  double mean = 0, of_large = 0, large = 0, total = 0;
  for (NodeId v = 0; v < n; ++v) mean += degrees[v] / n;
  for (NodeId v = 0; v < n; ++v) total += std::pow(degrees[v] - mean, 2);
  for (NodeId v = 0; v < n; ++v) large += by_degree[v];
  for (NodeId v = 0; v < n; ++v) of_large += by_degree[v] * degrees[v] / large;
  const double of_small = (mean * n - of_large * large) / (n - large);
  const double between = large * std::pow(of_large - mean, 2) + (n - large) * std::pow(of_small - mean, 2);
  const auto told = [&](Labels labels) {
    data.labels = std::move(labels);
    return count_graph(data).told_by_degree;
  };
  EXPECT_NEAR(told(Labels::single(by_degree, 2)), 1 - (1 - between / total) * (n - 1) / (n - 2), 1e-9);
  EXPECT_GT(told(Labels::single(by_degree, 2)), 0.5);
  EXPECT_LT(told(Labels::single(by_number, 2)), 0.01);
  EXPECT_NEAR(told(Labels::numbers(values)), 1, 1e-5);
  EXPECT_LT(told(Labels::numbers(others)), 0.2);
  EXPECT_EQ(told(Labels::single(std::vector<int32_t>(n, 0), 1)), 0);
  EdgeList ring;  // whose nodes have all the same degree
  for (NodeId v = 0; v < n; ++v) ring.add(v, (v + 1) % n);
  data.graph = build_graph(n, ring, {}, nullptr);
  EXPECT_EQ(told(Labels::single(by_number, 2)), 0);
  EXPECT_EQ(told(Labels::numbers(others)), 0);
}

// Most edges join equal classes only because most nodes have the same one.
TEST(Choices, ManyNodesOfOneClassAreNotAlike) {
  Dataset data = test::random_dataset(1);
  const NodeId n = 400;
  EdgeList edges;
  std::vector<int32_t> classes(n, 0);
  for (NodeId v = 0; v < n; ++v) {
    edges.add(v, (v + 1) % n);
    if (v % 10 == 0) classes[v] = 1;  // all of its neighbours are of the other class
  }
  data.graph = build_graph(n, edges, {}, nullptr);
  data.labels = Labels::single(classes, 2);
  data.split = std::vector<uint8_t>(n, 0);
  data.features = FeatureMatrix::dense(std::vector<float>(n, 1.0f), 1);
  EXPECT_EQ(count_graph(data).homophily, 0);
}

TEST(Choices, CountsAreThoseOfTheGraph) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const Dataset data = test::random_dataset(seed);
    const GraphCounts counts = count_graph(data);
    EXPECT_EQ(counts.nodes, data.num_nodes());
    EXPECT_EQ(counts.training, data.split_sizes()[0]);
    uint64_t labelled = 0, joining = 0, compared = 0, alike = 0;
    std::map<int32_t, double> ends;
    const auto is_known = [&](NodeId v) {
      return data.labels.present() && !data.labels.multi_label() && data.labels.class_of(v) >= 0 &&
             (data.role(v) == Role::kTrain || data.role(v) == Role::kValidation);
    };
    for (NodeId v = 0; v < data.num_nodes(); ++v) {
      labelled += data.is_trained_on(v) ? 1 : 0;
      for (const NodeId u : data.graph.neighbours(v)) {
        if (u == v || !data.labels.present()) continue;
        joining += data.role(v) == Role::kTrain && data.role(u) != Role::kTrain ? 1 : 0;
        if (!is_known(u) || !is_known(v)) continue;
        ++compared;
        ++ends[data.labels.class_of(v)];
        alike += data.labels.class_of(u) == data.labels.class_of(v) ? 1 : 0;
      }
    }
    if (counts.features == FeatureMatrix::Kind::kSparse) {
      bool negative = false;
      for (NodeId v = 0; v < data.num_nodes(); ++v)
        for (const float value : data.features.row_values(v)) negative = negative || value < 0;
      EXPECT_EQ(counts.negative_entries, negative);
    }
    EXPECT_EQ(counts.labelled, labelled);
    EXPECT_EQ(counts.joining_edges, joining);
    double chance = 0;
    for (const auto& [label, count] : ends) chance += std::pow(count / double(compared), 2);
    const double above = (double(alike) / double(compared) - chance) / (1 - chance);
    EXPECT_NEAR(counts.homophily, compared < 30 ? -1 : chance < 1 ? std::max(0.0, above) : 0, 1e-9);
  }
}

TEST(Choices, NegativeValuesAreSeenInAnyKindOfFeatures) {
  const auto dense = [](std::vector<float> values) {
    Buffer<float> copied(values.size());
    std::copy(values.begin(), values.end(), copied.begin());
    return FeatureMatrix::dense(std::move(copied), 2);
  };
  const auto sparse = [](float value) {
    Buffer<EdgeOffset> offsets(3);
    Buffer<uint32_t> columns(1);
    Buffer<float> values(1);
    offsets[0] = 0, offsets[1] = 0, offsets[2] = 1, columns[0] = 1, values[0] = value;
    return FeatureMatrix::sparse(std::move(offsets), std::move(columns), std::move(values), 2);
  };
  EXPECT_FALSE(has_negative_values(dense({0, 1, 2, 3})));
  EXPECT_TRUE(has_negative_values(dense({0, 1, 2, -3})));
  EXPECT_FALSE(has_negative_values(sparse(1)));
  EXPECT_TRUE(has_negative_values(sparse(-1)));
  EXPECT_FALSE(has_negative_values(FeatureMatrix::identity(4)));
}

}  // namespace
}  // namespace cgcn
