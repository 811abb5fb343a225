#include "partition/metis.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/threads.h"
#include "random_dataset.h"
#include "support.h"

namespace cgcn {
namespace {

std::vector<NodeId> all_nodes(const Dataset& data) {
  std::vector<NodeId> nodes(data.num_nodes());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  return nodes;
}

TEST(Metis, ItsGraphIsTheSymmetrisedOneAmongTheChosenNodes) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = test::random_dataset(seed);
    std::vector<NodeId> nodes;
    for (NodeId v = 0; v < data.num_nodes(); ++v)
      if (seed % 3 == 0 || v % 3 != 1) nodes.push_back(v);
    const MetisGraph graph = make_metis_graph(data, nodes, NodeWeights::kDegree);
    const auto a = test::dense_adjacency(data.graph);
    const size_t n = nodes.size();
    ASSERT_EQ(graph.num_nodes(), static_cast<int32_t>(n));
    int64_t weight_sum = 0;
    for (size_t i = 0; i < n; ++i) {
      std::vector<int32_t> expected;
      for (size_t j = 0; j < n; ++j)
        if (i != j && (a[nodes[i]][nodes[j]] != 0 || a[nodes[j]][nodes[i]] != 0))
          expected.push_back(static_cast<int32_t>(j));
      const std::vector<int32_t> row(graph.targets.begin() + graph.offsets[i],
                                     graph.targets.begin() + graph.offsets[i + 1]);
      EXPECT_EQ(row, expected);
      EXPECT_EQ(graph.node_weights[i], static_cast<int32_t>(row.size()) + 1);
      for (int32_t e = graph.offsets[i]; data.graph.weighted() && e < graph.offsets[i + 1]; ++e) {
        const auto j = static_cast<size_t>(graph.targets[e]);
        EXPECT_GE(graph.edge_weights[e], 1);
        weight_sum += graph.edge_weights[e];
        const auto* reverse = std::find(graph.targets.begin() + graph.offsets[j],
                                        graph.targets.begin() + graph.offsets[j + 1], static_cast<int32_t>(i));
        EXPECT_EQ(graph.edge_weights[e], graph.edge_weights[reverse - graph.targets.begin()]);
      }
    }
    EXPECT_LT(weight_sum, INT32_MAX);
    if (HasFailure()) return;
  }
}

TEST(Metis, GraphsBeyondItsIndicesAreRefusedWithTheLimit) {
  EXPECT_NO_THROW(check_metis_size(2'449'029, 123'718'280));
  for (const auto& [nodes, entries] : {std::pair<uint64_t, uint64_t>{1000, 2'147'483'648}, {2'147'483'647, 10}}) {
    const std::string message = test::message_of<Error>([&] { check_metis_size(nodes, entries); });
    EXPECT_NE(message.find("2,147,483,647"), std::string::npos) << message;
    EXPECT_NE(message.find("--partitioner multilevel"), std::string::npos) << message;
  }
}

Dataset large_random_graph() {
  EdgeList edges;
  Random random(1, Purpose::kTest);
  for (int i = 0; i < 2'000'000; ++i) edges.add(random.below(200'000), random.below(200'000));
  Dataset data;
  data.graph = build_graph(200'000, edges, {}, nullptr);
  return data;
}

TEST(Metis, AnInterruptStopsItAtOnce) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = large_random_graph();
  MetisGraph graph = make_metis_graph(data, all_nodes(data), NodeWeights::kUniform);
  const Timer timer;
  std::thread user([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    request_interrupt();
  });
  EXPECT_THROW(run_metis(std::move(graph), 1000, {}), Interrupted);
  EXPECT_LT(timer.seconds(), 2);  // it takes many times that
  user.join();
  clear_interrupt();
}

TEST(Metis, WorkBesideItRunsOnTheOtherThreadsWithTheMemoryThatIsLeft) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = test::random_dataset(6);
  const auto graph = [&] { return make_metis_graph(data, all_nodes(data), NodeWeights::kUniform); };
  const ThreadCountScope threads(3);
  PartitionOptions options;
  options.metis_memory = estimate_metis_memory(data.num_nodes(), graph().targets.size()) + 1000;
  int calls = 0;
  const MetisRun run = run_metis(graph(), 2, options, [&](uint64_t memory) {
    ++calls;
    EXPECT_EQ(memory, 1000u);
    EXPECT_EQ(thread_count(), 2);
    return true;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(thread_count(), 3);
  EXPECT_GT(run.seconds, 0);
  EXPECT_GT(run.beside_seconds, 0);
  const MetisRun alone = run_metis(graph(), 2, options);
  EXPECT_TRUE(std::ranges::equal(run.clusters, alone.clusters));
  const ThreadCountScope one(1);
  run_metis(graph(), 2, options, [](uint64_t) {
    ADD_FAILURE() << "there is no other thread";
    return true;
  });
}

TEST(Metis, AFailureBesideItEndsItAtOnce) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = large_random_graph();
  MetisGraph graph = make_metis_graph(data, all_nodes(data), NodeWeights::kUniform);
  const ThreadCountScope threads(2);
  const Timer timer;
  EXPECT_EQ(test::message_of<Error>(
                [&] { run_metis(std::move(graph), 1000, {}, [](uint64_t) -> bool { throw Error("no luck"); }); }),
            "no luck");
  EXPECT_LT(timer.seconds(), 2);  // METIS takes many times that
  EXPECT_EQ(thread_count(), 2);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

TEST(Metis, WhatItSaysItselfStaysOffTheScreen) {
  log::set_level(log::Level::kQuiet);
  // A graph that is not symmetric and an offset that leads outside: METIS complains or dies, the user gets one Error.
  MetisGraph graph;
  graph.offsets = Buffer<int32_t>(101);
  std::iota(graph.offsets.begin(), graph.offsets.end(), 0);
  graph.targets = Buffer<int32_t>(100, 1'000'000'000);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const std::string message = test::message_of<Error>([&] { run_metis(std::move(graph), 10, {}); });
  EXPECT_NE(message.find("METIS"), std::string::npos);
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
}

// As a library in a program with threads and children of its own.
TEST(Metis, WorksBesideThreadsThatAllocateAndLeavesOtherChildrenAlone) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = test::random_dataset(6);
  const pid_t other = ::fork();
  if (other == 0) ::_exit(7);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!stop) std::vector<int>(1000).swap(*std::make_unique<std::vector<int>>());
    });
  for (int i = 0; i < 20; ++i) run_metis(make_metis_graph(data, all_nodes(data), NodeWeights::kUniform), 2, {});
  stop = true;
  for (std::thread& thread : threads) thread.join();
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Metis, WorksInAProgramThatIgnoresItsChildren) {
  log::set_level(log::Level::kQuiet);
  const Dataset data = test::random_dataset(6);
  const auto graph = [&] { return make_metis_graph(data, all_nodes(data), NodeWeights::kUniform); };
  const MetisRun wanted = run_metis(graph(), 2, {});
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const MetisRun run = run_metis(graph(), 2, {});
  std::signal(SIGCHLD, before);
  EXPECT_TRUE(std::ranges::equal(run.clusters, wanted.clusters));
}

}  // namespace
}  // namespace cgcn
