// The launcher of a job is found among the ancestors of a process, and is ended if it does not end by itself.
#include "process/launcher_end.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace cgcn::dist {
namespace {

namespace fs = std::filesystem;

// A shell that is called like a launcher, and a process that it started.
class LauncherEnd : public testing::Test {
 protected:
  LauncherEnd() {
    std::string name = (fs::temp_directory_path() / "launcher-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~LauncherEnd() override {
    if (launcher_ > 0) ::kill(launcher_, SIGKILL);
    if (launcher_ > 0) ::waitpid(launcher_, nullptr, 0);
    if (rank_ > 0) ::kill(rank_, SIGKILL);
    fs::remove_all(folder_);
  }
  void start(const std::string& name) {
    fs::copy_file(fs::canonical("/bin/sh"), folder_ / name);
    const std::string program = folder_ / name, file = folder_ / "rank",
                      script = "sleep 60 & echo $! >" + file + ".part; mv " + file + ".part " + file + "; wait";
    launcher_ = ::fork();
    if (launcher_ == 0) {
      ::execl(program.c_str(), program.c_str(), "-c", script.c_str(), nullptr);
      ::_exit(1);
    }
    while (!fs::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::ifstream(file) >> rank_;
  }

  fs::path folder_;
  pid_t launcher_ = 0, rank_ = 0;
};

TEST_F(LauncherEnd, EndsOneThatWaits) {
  start("mpirun");
  const auto found = find_launcher(rank_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->process, launcher_);
  EXPECT_EQ(found->name, "mpirun");
  end_later(*found);
  EXPECT_EQ(::waitpid(launcher_, nullptr, WNOHANG), 0);  // it has a few seconds
  int status = 0;
  for (int i = 0; i < 1000 && ::waitpid(launcher_, &status, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  launcher_ = 0;
}

TEST_F(LauncherEnd, LeavesOtherProgramsAlone) {
  start("slurmstepd");
  EXPECT_FALSE(find_launcher(rank_).has_value());
}

}  // namespace
}  // namespace cgcn::dist
