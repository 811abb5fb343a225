// Ctrl-C while METIS works: the program ends soon, leaves nothing behind, and its child is gone.
#include <chrono>
#include <fstream>
#include <thread>

#include "common/timer.h"
#include "graph/graph_builder.h"
#include "graph/store.h"
#include "program.h"

namespace cgcn {
namespace {

// Processes whose parent is this one.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    if (!std::getline(file, text)) continue;
    int pid = 0, its_parent = 0;
    char state = 0;
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos || std::sscanf(text.c_str(), "%d", &pid) != 1) continue;
    if (std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &its_parent) == 2 && its_parent == parent)
      children.push_back(pid);
  }
  return children;
}

// Whether the process has a handler for the signal: it has just been started.
bool handles(pid_t process, int signal) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

class PartitionInterrupt : public test::ProgramTest {
 protected:
  void SetUp() override {
    test::ProgramTest::SetUp();
    Dataset data;
    EdgeList edges;
    Random random(1, Purpose::kTest);
    for (int i = 0; i < 2'000'000; ++i) edges.add(random.below(200'000), random.below(200'000));
    data.graph = build_graph(200'000, edges, {}, nullptr);
    data.features = FeatureMatrix::identity(200'000);
    write_store(folder_ / "g", data, StagedDirectory::Existing::kRefuse);
  }
  void expect_nothing_left() const {
    EXPECT_FALSE(fs::exists(folder_ / "g" / "partitions") && !fs::is_empty(folder_ / "g" / "partitions"));
    EXPECT_NO_THROW(Store(folder_ / "g"));
  }
};

TEST_F(PartitionInterrupt, StopsMetisAndLeavesNothing) {
  const pid_t program = start({"partition", "g", "--transductive", "--parts", "2000"});
  const Timer patience;
  std::vector<pid_t> children;
  while (children.empty() && patience.seconds() < 60) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    children = children_of(program);
  }
  ASSERT_EQ(children.size(), 1u) << "METIS should run in a process of its own";
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ASSERT_EQ(::kill(children[0], 0), 0) << "METIS was done too soon: this shows nothing";
  const Timer timer;
  ::kill(program, SIGINT);
  const Outcome outcome = finish(program);
  EXPECT_LT(timer.seconds(), 3);  // METIS would take many times that
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_THAT(outcome.errors, testing::HasSubstr("partitioning was stopped, no partition was written"));
  EXPECT_NE(::kill(children[0], 0), 0);
  expect_nothing_left();
}

// In its own passes as well as while METIS works for it, by either signal.
TEST_F(PartitionInterrupt, StopsTheMultilevelPartitionerAnywhere) {
  uint32_t stopped = 0;
  for (const int milliseconds : {0, 50, 100, 200, 400, 800}) {
    const pid_t program = start({"partition", "g", "--transductive", "--parts", "2000", "--partitioner", "multilevel"});
    const Timer patience;
    while (!handles(program, SIGTERM) && patience.seconds() < 60)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    const Timer timer;
    ::kill(program, stopped % 2 == 0 ? SIGTERM : SIGINT);
    const Outcome outcome = finish(program);
    EXPECT_LT(timer.seconds(), 3);      // a pass over the graph takes far less
    if (outcome.exit_code == 0) break;  // it was done
    EXPECT_EQ(outcome.exit_code, 130) << outcome.errors;
    EXPECT_THAT(outcome.errors, testing::HasSubstr("interrupted"));
    expect_nothing_left();
    ++stopped;
  }
  EXPECT_GE(stopped, 2u);
}

}  // namespace
}  // namespace cgcn
