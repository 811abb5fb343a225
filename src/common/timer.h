// Wall-clock seconds, and a named account of where they went.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace cgcn {

class Timer {
 public:
  Timer() : start_(Clock::now()) {}
  void restart() { start_ = Clock::now(); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
};

// Seconds per stage in the order in which the stages first ran, for the summary that a command prints.
class StageTimes {
 public:
  void add(const std::string& stage, double seconds) {
    for (auto& [name, total] : stages_)
      if (name == stage) {
        total += seconds;
        return;
      }
    stages_.emplace_back(stage, seconds);
  }
  const std::vector<std::pair<std::string, double>>& stages() const { return stages_; }

 private:
  std::vector<std::pair<std::string, double>> stages_;
};

}  // namespace cgcn
