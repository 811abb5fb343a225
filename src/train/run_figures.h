// What a run has taken of time and memory, over all its sessions, and this rank in this one.
#pragma once

#include <algorithm>

#include "common/memory.h"
#include "common/timer.h"
#include "dist/group.h"
#include "train/checkpoint.h"
#include "train/stage.h"

namespace cgcn {

// What a rank of a group did with the time of its steps, in this session.
struct RankFigures {
  double compute = 0, waiting = 0, moving = 0;  // seconds; waiting: for slower ranks, moving: for bytes
  uint64_t bytes_sent = 0;
  uint64_t peak_memory = 0;
};

class RunFigures {
 public:
  // before: what was done for a new run until now.
  explicit RunFigures(StageTimes before = {}) : stages_(std::move(before)), seconds_before_(stages_.total()) {}

  StageTimes& stages() { return stages_; }
  const StageTimes& stages() const { return stages_; }
  double total_seconds() const { return seconds_before_ + session_.seconds(); }
  uint64_t peak_memory() const { return std::max(peak_before_, memory_figures().peak_rss); }
  const RankFigures& rank() const { return rank_; }

  // Figures of earlier sessions count.
  void resume(const TrainingState& state) {
    seconds_before_ = state.total_seconds;
    StageTimes all;
    all.add(state.stages);
    all.add(stages_.list());
    stages_ = std::move(all);
  }
  // The peak counts again from here, so that the steps are measured apart from the partition and A·X …
  void begin_steps() {
    peak_before_ = memory_figures().peak_rss;
    reset_peak_rss();
    measures_steps_ = true;
  }
  // … until the first evaluation takes memory.
  void end_steps(TrainingState& state) {
    measure_steps(state);
    measures_steps_ = false;
  }
  // The steps of this session took so long, and the group's messages in them that.
  void count_steps(double seconds, const dist::Traffic& traffic) {
    rank_ = {.compute = seconds - traffic.waiting - traffic.moving,
             .waiting = traffic.waiting,
             .moving = traffic.moving,
             .bytes_sent = traffic.bytes_sent};
  }
  void write_to(TrainingState& state) const {
    state.total_seconds = total_seconds();
    state.stages = stages_.list();
    measure_steps(state);
  }

 private:
  void measure_steps(TrainingState& state) const {
    if (measures_steps_) state.training_peak = std::max(state.training_peak, memory_figures().peak_rss);
  }

  Timer session_;
  StageTimes stages_;  // but for the epochs, whose times are in metrics.jsonl
  double seconds_before_ = 0;
  uint64_t peak_before_ = 0;
  bool measures_steps_ = false;
  RankFigures rank_;
};

}  // namespace cgcn
