// Runs the program in a folder of its own, as a user would.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "support.h"
#include "train/checkpoint.h"
#include "train/run_directory.h"

namespace cgcn::test {

class ProgramTest : public testing::Test {
 protected:
  struct Outcome {
    int exit_code;  // negative: ended by that signal
    std::string output, errors;
  };

  // In the test's folder, or one within it.
  pid_t start(std::vector<std::string> arguments, const std::string& where = ".") {
    // Tests rest on the fixed defaults, not on what `train` chooses from a graph (choices_test.cc).
    const auto named = [&](const char* word) {
      return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
    };
    if (named("train") && !named("--recipe") && !named("--resume") && !named("--help"))
      arguments.insert(arguments.end(), {"--recipe", "none"});
    arguments.insert(arguments.begin(), CGCN_PROGRAM);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto write_to = [&](const char* name) {
        return ::open((folder_ / fmt::format("{}-{}", name, ::getpid())).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
      };
      if (::chdir((folder_ / where).c_str()) != 0) ::_exit(99);
      const int out = write_to("stdout"), err = write_to("stderr");
      ::dup2(out, STDOUT_FILENO);
      ::dup2(err, STDERR_FILENO);
      std::vector<char*> pointers;
      for (std::string& argument : arguments) pointers.push_back(argument.data());
      pointers.push_back(nullptr);
      ::execv(CGCN_PROGRAM, pointers.data());
      ::_exit(98);
    }
    return child;
  }
  Outcome finish(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
            read_text_file(folder_ / fmt::format("stdout-{}", child)),
            read_text_file(folder_ / fmt::format("stderr-{}", child))};
  }
  Outcome run(std::vector<std::string> arguments, const std::string& where = ".") {
    return finish(start(std::move(arguments), where));
  }
  std::string refused(std::vector<std::string> arguments) {
    const Outcome outcome = run(std::move(arguments));
    // Wrong usage is what names an option or an argument, but for a budget that is too small.
    const bool usage = std::regex_search(outcome.errors, std::regex("(^|\n)error: (-|[A-Z]+:)")) &&
                       outcome.errors.find("error: --memory: is too little") == std::string::npos;
    EXPECT_EQ(outcome.exit_code, usage ? 2 : 1) << outcome.errors;
    EXPECT_THAT(outcome.errors, testing::HasSubstr("error: "));
    return outcome.errors;
  }

  // The budget in MiB that a refusal names.
  static uint64_t least_named(const std::string& message) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(message, found, std::regex("--memory ([0-9]+)M or more"))) << message;
    return found.empty() ? 0 : std::stoull(found[1]);
  }

  void generate(const std::string& store, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"generate", store, "--nodes", "600", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ASSERT_EQ(run(arguments).exit_code, 0);
  }
  static std::vector<std::string> train(const std::string& store, const std::string& where,
                                        std::vector<std::string> more = {}, int epochs = 6) {
    std::vector<std::string> arguments = {"train",   store, "--run",       where, "--hidden", "16",
                                          "--parts", "4",   "--per-batch", "2",   "--epochs", std::to_string(epochs)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::vector<float> weights(const std::string& run, const char* file = "last.safetensors") {
    const SavedModel saved = load_model(folder_ / run / file);
    return {saved.model->values().begin(), saved.model->values().end()};
  }

  // Calls of the program on files fail while it lives, as tests/faults/inject.cc says.
  class InjectedFault {
   public:
    InjectedFault(const ProgramTest& test, const std::string& fault) {
      const fs::path library = test.folder_ / "inject_faults.so";  // a path in LD_PRELOAD ends at a blank
      fs::copy_file(CGCN_INJECT_FAULTS, library, fs::copy_options::overwrite_existing);
      ::setenv("LD_PRELOAD", library.c_str(), 1);
      ::setenv("CGCN_FAULT", fault.c_str(), 1);
    }
    ~InjectedFault() {
      ::unsetenv("LD_PRELOAD");
      ::unsetenv("CGCN_FAULT");
    }
    InjectedFault(const InjectedFault&) = delete;
    InjectedFault& operator=(const InjectedFault&) = delete;
  };

  TemporaryFolder folder_;
};

}  // namespace cgcn::test
