// What can go wrong around a store that is in use: two programs at once, one killed at any moment, files that change.
#include <chrono>
#include <fstream>
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
  void wait_for_metrics(const std::string& run) const {
    const fs::path metrics = folder_ / run / "metrics.jsonl";
    for (int i = 0; i < 3000 && (!fs::exists(metrics) || fs::file_size(metrics) == 0); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(fs::exists(metrics)) << "the training does not get to its first epoch";
  }
  // Damages features.npy of the partition that a training uses: the run names it, and so does the next start.
  void expect_train_ends(const std::function<void(const fs::path&)>& damage, const std::string& said) {
    generate_wide();
    const pid_t program = start(train_wide("r", 100'000));
    wait_for_metrics("r");
    damage(partitions()[0] / "features.npy");
    const Outcome outcome = finish(program);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, testing::AllOf(HasSubstr("features.npy"), HasSubstr(said)));
    EXPECT_THAT(refused({"train", "--resume", "--run", "r"}), HasSubstr("--force makes it again"));
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

// Files that stay in memory are mapped. If one is cut short, the run ends with its name.
TEST_F(Faults, AMappedFileCutShortUnderTrainingIsNamed) {
  expect_train_ends([](const fs::path& features) { fs::resize_file(features, 5000); }, "was cut short");
}

// One that keeps its size is noticed before any result of it is written.
TEST_F(Faults, AMappedFileChangedUnderTrainingIsNamed) {
  const auto change_a_byte = [](const fs::path& features) {
    std::fstream file(features, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(fs::file_size(features) / 2);
    file.seekg(middle);
    const int byte = file.get();
    file.seekp(middle);
    file.put(static_cast<char>(byte ^ 1));
  };
  expect_train_ends(change_a_byte, "was changed while it was in use");
}

// What a command of ours puts in the place of a store is another store: who uses the old one continues with it.
TEST_F(Faults, AStoreReplacedUnderTrainingIsNoChange) {
  generate_wide();
  const pid_t program = start(train_wide("r", 60));
  wait_for_metrics("r");
  ASSERT_EQ(run({"generate", "g", "--force", "--nodes", "500", "--quiet"}).exit_code, 0);
  ASSERT_FALSE(fs::exists(folder_ / "r" / "result.json")) << "the training was done too soon: this shows nothing";
  const Outcome outcome = finish(program);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
}

TEST_F(Faults, AReadErrorUnderTrainingIsNamedAndARunContinuesFromWhatWasSaved) {
  generate_wide();
  ASSERT_EQ(run({"partition", "g", "--parts", "50", "--quiet"}).exit_code, 0);
  const auto train_within = [](const std::string& memory, const std::string& where) {
    std::vector<std::string> command = train_wide(where, 4);
    command.insert(command.end(), {"--checkpoint-seconds", "0", "--memory", memory});
    return command;
  };
  const std::string memory = fmt::format("{}M", least_named(refused(train_within("8M", "r"))));
  const Outcome whole = run(train_within(memory, "whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  ASSERT_THAT(whole.errors, HasSubstr("from disk"));
  const std::string errors = [&] {
    const InjectedFault fault(*this, "pread:EIO:120:features.npy");  // 50 batches per epoch
    return refused(train_within(memory, "r"));
  }();
  EXPECT_THAT(errors, testing::AllOf(HasSubstr("features.npy: cannot read: Input/output error"), HasSubstr("hint: ")));
  const Outcome resumed = run({"train", "--resume", "--run", "r"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(weights("r"), weights("whole"));
}

}  // namespace
}  // namespace cgcn
