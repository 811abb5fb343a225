// What can go wrong around a store that is in use: two programs at once, one killed at any moment, files that change.
#include <chrono>
#include <thread>

#include "common/random.h"
#include "graph/store.h"
#include "program.h"

namespace cgcn {
namespace {

using testing::HasSubstr;

class Faults : public test::ProgramTest {
 protected:
  void generate_wide() {
    ASSERT_EQ(run({"generate", "g", "--nodes", "20000", "--edges", "300000", "--features", "200", "--quiet"}).exit_code,
              0);
  }
  static std::vector<std::string> train_wide(const std::string& run, int epochs = 2) {
    return {"train", "g", "--run", run, "--parts", "50", "--hidden", "16", "--epochs", std::to_string(epochs)};
  }
  std::vector<fs::path> partitions() const {
    std::vector<fs::path> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_ / "g" / "partitions", ignored)) found.push_back(entry);
    return found;
  }
};

TEST_F(Faults, TwoRunsThatMakeTheSamePartitionAtOnceBothTrain) {
  generate_wide();
  for (int round = 0; round < 3; ++round) {
    fs::remove_all(folder_ / "g" / "partitions");
    fs::remove_all(folder_ / "g" / "cache");
    const std::string a = fmt::format("a{}", round), b = fmt::format("b{}", round);
    const pid_t first = start(train_wide(a)), second = start(train_wide(b));
    const Outcome one = finish(first), other = finish(second);
    ASSERT_EQ(one.exit_code, 0) << one.errors;
    ASSERT_EQ(other.exit_code, 0) << other.errors;
    EXPECT_EQ(weights(a), weights(b));
    EXPECT_EQ(partitions().size(), 1u);
  }
}

TEST_F(Faults, APartitionKilledAtAnyMomentIsMadeAgain) {
  generate_wide();
  Random random(7, Purpose::kTest);
  const std::vector<std::string> command = {"partition", "g", "--parts", "50", "--quiet"};
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(command).exit_code, 0);
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  int killed = 0;
  for (int round = 0; round < 20; ++round) {
    fs::remove_all(folder_ / "g" / "partitions");
    fs::remove_all(folder_ / "g" / "cache");
    const pid_t program = start(command);
    std::this_thread::sleep_for(whole * random.below(1000) / 1000);
    ::kill(program, SIGKILL);
    if (finish(program).exit_code == -SIGKILL) ++killed;
    const Outcome again = run(command);
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    ASSERT_EQ(partitions().size(), 1u) << "what the killed one left should be gone";
    EXPECT_NO_THROW(Store{partitions()[0]});
  }
  EXPECT_GT(killed, 5);
  // What is left of one partition goes when another is used, too.
  const auto is_left = [&] {
    const auto found = partitions();
    return std::any_of(found.begin(), found.end(),
                       [](const fs::path& path) { return path.string().ends_with(".tmp"); });
  };
  const pid_t program = start({"partition", "g", "--parts", "40", "--quiet"});
  while (!is_left() && ::waitpid(program, nullptr, WNOHANG) == 0) std::this_thread::yield();
  ::kill(program, SIGKILL);
  finish(program);
  ASSERT_TRUE(is_left()) << "the partition was done too soon: this shows nothing";
  ASSERT_EQ(run(command).exit_code, 0);
  EXPECT_FALSE(is_left());
}

// Files that stay in memory are mapped. Where one is cut short, the run ends with its name.
TEST_F(Faults, AMappedFileCutShortUnderTrainingIsNamed) {
  generate_wide();
  const pid_t program = start(train_wide("r", 100'000));
  while (!fs::exists(folder_ / "r" / "metrics.jsonl") || fs::file_size(folder_ / "r" / "metrics.jsonl") == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  fs::resize_file(partitions()[0] / "features.npy", 5000);
  const Outcome outcome = finish(program);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.errors, testing::AllOf(HasSubstr("features.npy"), HasSubstr("was cut short")));
  EXPECT_THAT(refused({"train", "--resume", "--run", "r"}), HasSubstr("--force makes it again"));
}

}  // namespace
}  // namespace cgcn
