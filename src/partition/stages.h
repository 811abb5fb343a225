// Seconds and peak memory of the steps that a command takes, one after the other.
#pragma once

#include <string>
#include <vector>

#include "common/memory.h"
#include "common/timer.h"

namespace cgcn {

// Those that look for clusters.
inline constexpr const char* kMetisStage = "METIS";  // done by a process of its own
inline constexpr const char* kMultilevelStage = "multilevel";

class Stages {
 public:
  struct Stage {
    std::string name;
    double seconds = 0;
    uint64_t peak_rss = 0;
  };
  // apart: each stage's peak counts from its own beginning. Otherwise it is that of the process so far.
  explicit Stages(bool apart = false) : apart_(apart) {}

  void begin(std::string name) {
    end();
    running_ = std::move(name);
    if (apart_) reset_peak_rss();
    timer_.restart();
  }
  void end() {
    if (running_.empty()) return;
    list_.push_back({std::move(running_), timer_.seconds(), memory_figures().peak_rss});
    running_.clear();
  }
  // Ends a stage that another process did, with that one's own figures.
  void end_as(double seconds, uint64_t peak_rss) {
    list_.push_back({std::move(running_), seconds, peak_rss});
    running_.clear();
  }
  // What this process did while another did the stage that has just ended.
  void add_beside(std::string name, double seconds) {
    list_.push_back({std::move(name), seconds, memory_figures().peak_rss});
  }
  const std::vector<Stage>& list() const { return list_; }

 private:
  bool apart_;
  std::string running_;
  Timer timer_;
  std::vector<Stage> list_;
};

}  // namespace cgcn
