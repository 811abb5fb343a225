// Where the time of a run goes: the stages by name, and a named account of their seconds.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "common/timer.h"

namespace cgcn {

enum class Stage { kTrials, kPartition, kProduct, kCheckpoints, kTest, kWaiting, kSteps, kValidation, kOther };
inline constexpr std::array kStageNames = {"trying networks",     "partition", "A·X",        "checkpoints", "test",
                                           "waiting for batches", "steps",     "validation", "other"};
constexpr const char* name_of(Stage stage) { return kStageNames[static_cast<size_t>(stage)]; }

// Seconds per stage in the order in which the stages first ran.
class StageTimes {
 public:
  using List = std::vector<std::pair<std::string, double>>;

  void add(Stage stage, double seconds) { add(name_of(stage), seconds); }
  // Of earlier sessions.
  void add(const List& stages) {
    for (const auto& [name, seconds] : stages) add(name, seconds);
  }
  template <class Work>
  void time(Stage stage, Work&& work) {
    const Timer timer;
    work();
    add(stage, timer.seconds());
  }
  const List& list() const { return list_; }
  double total() const {
    double sum = 0;
    for (const auto& [name, seconds] : list_) sum += seconds;
    return sum;
  }

 private:
  void add(const std::string& name, double seconds) {
    for (auto& [known, total] : list_)
      if (known == name) {
        total += seconds;
        return;
      }
    list_.emplace_back(name, seconds);
  }

  List list_;
};

}  // namespace cgcn
