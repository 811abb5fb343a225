#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "clustergcn/clustergcn.h"
#include "graph/store.h"
#include "support.h"

namespace clustergcn {
namespace {

using testing::HasSubstr;

// Two communities of linked nodes, and what the library is to make of them.
struct Communities {
  explicit Communities(uint32_t nodes = 200) {
    std::mt19937 random(1);
    std::normal_distribution<float> noise;
    for (uint32_t v = 0; v < nodes; ++v) {
      for (int link = 0; link < 4; ++link) {
        from.push_back(v);
        to.push_back(random() % (nodes / 2) * 2 + v % 2);
      }
      for (uint32_t f = 0; f < 3; ++f) features.push_back(noise(random) + static_cast<float>(v % 2));
      labels.push_back(static_cast<int32_t>(v % 2));
      split.push_back(v < nodes / 2 ? 0 : v < nodes * 3 / 4 ? 1 : 2);
    }
    arrays.nodes = nodes;
    arrays.from = view(from);
    arrays.to = view(to);
    arrays.features = view(features, 3);
    arrays.labels = view(labels);
    arrays.split = view(split);
  }
  std::vector<uint32_t> from, to;
  std::vector<float> features;
  std::vector<int32_t> labels;
  std::vector<uint8_t> split;
  GraphArrays arrays;
};

Options quick_options(const char* epochs = "4") {
  Options options;
  options.set("layers", "2").set("hidden", "8").set("epochs", epochs).set("parts", "4").set("seed", "2");
  return options;
}

template <class Work>
std::string error_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(EngineGraph, InMemoryAndSavedHaveTheSameHashes) {
  const Communities communities;
  const Graph graph = Graph::from_arrays(communities.arrays);
  const cgcn::test::TemporaryFolder folder;
  graph.save((folder.path() / "store").string());
  const Graph opened = Graph::open((folder.path() / "store").string());
  EXPECT_EQ(graph.hash(), opened.hash());
  EXPECT_EQ(graph.num_edges(), opened.num_edges());
  EXPECT_EQ(graph.store(), "");
  EXPECT_EQ(graph.split_sizes(), (std::array<uint64_t, 3>{100, 50, 50}));
}

TEST(EngineGraph, RowsInTheRightLayoutAreUsedWhereTheyLie) {
  const Communities communities;
  const Graph graph = Graph::from_arrays(communities.arrays);
  const auto* offsets = static_cast<const int64_t*>(graph.offsets().data);
  const auto* targets = static_cast<const int32_t*>(graph.targets().data);
  GraphArrays rows;
  rows.offsets = view(std::span(offsets, 201));
  rows.targets = view(std::span(targets, static_cast<size_t>(offsets[200])));
  rows.features = communities.arrays.features;
  rows.labels = communities.arrays.labels;
  rows.split = communities.arrays.split;
  const Graph again = Graph::from_arrays(rows);
  EXPECT_EQ(again.targets().data, targets);
  EXPECT_EQ(again.offsets().data, offsets);
  EXPECT_EQ(again.features().data, communities.features.data());
  EXPECT_EQ(again.hash(), graph.hash());
}

// Of a CSR whose two directions differ: not taken as it lies, but as import does.
TEST(EngineGraph, WeightsOfTheTwoDirectionsOfAnEdgeBecomeTheirMean) {
  const std::vector<int64_t> offsets = {0, 1, 2};
  const std::vector<int32_t> targets = {1, 0};
  for (const float back : {2.0f, 4.0f}) {
    const std::vector<float> weights = {2, back};
    GraphArrays rows;
    rows.nodes = 2;
    rows.offsets = view(offsets);
    rows.targets = view(targets);
    rows.weights = view(weights);
    const Graph graph = Graph::from_arrays(rows);
    const auto* kept = static_cast<const float*>(graph.weights().data);
    EXPECT_EQ(kept[0], (2 + back) / 2);
    EXPECT_EQ(kept[1], (2 + back) / 2);
    EXPECT_EQ(kept == weights.data(), back == 2);
  }
}

TEST(EngineGraph, IsPartitionedIntoClusters) {
  Communities communities;
  const Graph graph = Graph::from_arrays(communities.arrays);
  const Graph::Clusters made = graph.partition({{"parts", "4"}, {"transductive", "true"}});
  EXPECT_EQ(made.number, 4u);
  EXPECT_FALSE(made.reused);
  EXPECT_GT(made.links_kept, 0.25);
  EXPECT_LE(made.links_kept, 1);
  EXPECT_GE(made.balance, 1);
  const Graph::Clusters again = graph.partition({{"parts", "4"}, {"transductive", "true"}});
  EXPECT_TRUE(again.reused);
  EXPECT_EQ(again.name, made.name);
  EXPECT_NE(error_of([&] { graph.partition({{"clusters", "4"}}); }).find("--clusters"), std::string::npos);
}

TEST(EngineGraph, WhatIsWrongIsNamed) {
  Communities c;
  const auto refused = [&] { return error_of([&] { Graph::from_arrays(c.arrays); }); };
  c.to[7] = 200;
  EXPECT_THAT(refused(), HasSubstr("entry 7 is 200, and it must be from 0 to 199"));
  c.to[7] = 0;
  c.features[4] = NAN;
  EXPECT_THAT(refused(), HasSubstr("row 1, column 1 is nan"));
  c.features[4] = 0;
  c.arrays.labels.rows = 199;
  EXPECT_THAT(refused(), HasSubstr("labels"));
  c.arrays.labels.rows = 200;
  c.split[0] = 9;
  EXPECT_THAT(refused(), HasSubstr("split"));
}

TEST(EngineTrain, GivesHistoryScoresAndAModelThatPredicts) {
  const Communities communities;
  const Graph graph = Graph::from_arrays(communities.arrays);
  std::vector<uint32_t> seen;
  Session session;
  session.on_epoch = [&](const Epoch& epoch) {
    seen.push_back(epoch.number);
    return true;
  };
  const Training training = train(graph, quick_options("20"), session);
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(training.history.size(), 20u);
  EXPECT_GT(training.evaluation.test.micro_f1, 0.8);
  EXPECT_EQ(training.run, "");
  const Matrix all = training.model.probabilities(graph);
  ASSERT_EQ(all.rows, 200u);
  const std::vector<uint32_t> nodes = {150, 3};
  const Matrix some = training.model.probabilities(graph, nodes);
  for (size_t i = 0; i < 2; ++i)
    for (size_t k = 0; k < 2; ++k) EXPECT_EQ(some.values[2 * i + k], all.values[2 * nodes[i] + k]);
  EXPECT_EQ(training.model.embeddings(graph).columns, 8u);
  EXPECT_EQ(Model::from_bytes(training.model.to_bytes()).probabilities(graph).values, all.values);
  EXPECT_EQ(training.model.evaluate(graph).test.micro_f1, training.evaluation.test.micro_f1);
  EXPECT_EQ(training.model.options().get("hidden"), "8");
}

TEST(EngineTrain, AModelComputesInEitherPrecision) {
  const Communities communities;
  const Graph graph = Graph::from_arrays(communities.arrays);
  const Model model =
      train(graph, quick_options("20").set("smooth", "none")).model;  // smoothing may hide the difference
  const Model half = model.in_precision("bfloat16");
  EXPECT_EQ(half.in_precision("trained").probabilities(graph).values, model.probabilities(graph).values);
  EXPECT_NE(half.probabilities(graph).values, model.probabilities(graph).values);
  EXPECT_EQ(half.in_precision("float32").embeddings(graph, 2).values, model.embeddings(graph, 2).values);
  EXPECT_NE(half.evaluate(graph).test.loss, model.evaluate(graph).test.loss);
  EXPECT_NEAR(half.evaluate(graph).test.loss, model.evaluate(graph).test.loss, 0.02);
  const Matrix full_rows = model.embeddings(graph, 2), rows = half.embeddings(graph, 2);
  EXPECT_NE(rows.values, full_rows.values);
  for (size_t i = 0; i < rows.values.size(); ++i) EXPECT_NEAR(rows.values[i], full_rows.values[i], 0.05);
  EXPECT_EQ(half.options().get("precision"), "float32") << "of the training";
  EXPECT_THROW(model.in_precision("float16"), Error);
}

TEST(EngineTrain, LeavesNothingBehind) {
  namespace fs = std::filesystem;
  const auto own_folders = [] {  // those whose lock this process holds
    std::vector<fs::path> folders;
    std::error_code problem;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
      if (const fs::path file = fs::read_symlink(entry.path(), problem);
          file.string().find("/clustergcn-") != std::string::npos)
        folders.push_back(file.parent_path());
    return folders;
  };
  std::vector<fs::path> used;
  {
    const Communities communities;
    const Graph graph = Graph::from_arrays(communities.arrays);
    const Training training = train(graph, quick_options());
    used = own_folders();
  }
  EXPECT_GE(used.size(), 2u);  // the graph's and the model's
  for (const fs::path& folder : used) EXPECT_FALSE(fs::exists(folder)) << folder;
  EXPECT_TRUE(own_folders().empty());
}

TEST(EngineTrain, StopsWhereItIsAskedTo) {
  const Communities communities;
  const Graph graph = Graph::from_arrays(communities.arrays);
  Session session;
  session.on_epoch = [](const Epoch& epoch) { return epoch.number < 3; };
  const Training training = train(graph, quick_options("1000"), session);
  EXPECT_EQ(training.history.size(), 3u);
  EXPECT_TRUE(training.stopped_early);
  session.on_epoch = {};
  session.wants_stop = [] { return true; };
  EXPECT_THROW(train(graph, quick_options("100000"), session), Stopped);
}

TEST(EngineTrain, TwoAtOnceAreAsEachAlone) {
  const Communities communities;
  const Graph graph = Graph::from_arrays(communities.arrays);
  const std::vector<float> alone = train(graph, quick_options()).model.probabilities(graph).values;
  std::vector<std::vector<float>> found(3);
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> lines(3);
  for (size_t i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      Session session;
      session.log = [&, i](const std::string& line) { lines[i].push_back(line); };
      session.threads = static_cast<uint32_t>(i + 1);
      found[i] = train(graph, quick_options(), session).model.probabilities(graph, {}, session).values;
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : found) EXPECT_EQ(values, alone);
}

TEST(EngineTrain, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    const Communities communities;
    train(Graph::from_arrays(communities.arrays), quick_options());
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
}

TEST(EngineOptions, NamesMayHaveUnderscoresAndUnknownOnesAreRefused) {
  Options options;
  EXPECT_EQ(options.set("per_batch", "3").get("per-batch"), "3");
  EXPECT_THAT(error_of([&] { options.set("hiden", "3"); }), HasSubstr("hidden"));
  EXPECT_THAT(error_of([&] { options.set("hidden", "-1"); }), HasSubstr("--hidden"));
  EXPECT_EQ(Options().recipe("cora").get("layers"), "2");
  EXPECT_GT(Options::all().size(), 40u);
}

}  // namespace
}  // namespace clustergcn
