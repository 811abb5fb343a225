// Seconds and peak memory of a partition's stages, one after the other.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "common/memory.h"
#include "common/timer.h"

namespace cgcn {

enum class PartitionStage {
  kOpenStore,
  kOpen,
  kRandom,
  kGraph,
  kMultilevel,
  kMetisGraph,
  kMetis,        // done by a process of its own
  kBesideMetis,  // what this process did meanwhile
  kLayout,
  kProductOfLayout,
  kProductOfStore,
  kFigures
};
inline constexpr std::array kPartitionStageNames = {"open the store",  "open",
                                                    "random clusters", "graph for the partitioner",
                                                    "multilevel",      "graph for METIS",
                                                    "METIS",           "A·X, all nodes, during METIS",
                                                    "layout",          "A·X, the partition's nodes",
                                                    "A·X, all nodes",  "figures"};
constexpr const char* name_of(PartitionStage stage) { return kPartitionStageNames[static_cast<size_t>(stage)]; }

class PartitionStages {
 public:
  struct Figures {
    PartitionStage stage;
    double seconds = 0;
    uint64_t peak_rss = 0;
  };
  // apart: each stage's peak counts from its own beginning. Otherwise it is that of the process so far.
  explicit PartitionStages(bool apart = false) : apart_(apart) {}

  void begin(PartitionStage stage) {
    end();
    running_ = stage;
    if (apart_) reset_peak_rss();
    timer_.restart();
  }
  void end() {
    if (running_) list_.push_back({*running_, timer_.seconds(), memory_figures().peak_rss});
    running_.reset();
  }
  // Ends a stage that another process did, with that one's own figures.
  void end_as(double seconds, uint64_t peak_rss) {
    list_.push_back({running_.value(), seconds, peak_rss});
    running_.reset();
  }
  void add(PartitionStage stage, double seconds) { list_.push_back({stage, seconds, memory_figures().peak_rss}); }
  const std::vector<Figures>& list() const { return list_; }

 private:
  bool apart_;
  std::optional<PartitionStage> running_;
  Timer timer_;
  std::vector<Figures> list_;
};

}  // namespace cgcn
