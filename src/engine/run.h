// A training run as a command starts it: settings of several sources, a store, a run folder, perhaps many processes.
#pragma once

#include <optional>
#include <string>

#include "engine/settings.h"
#include "train/training.h"

namespace cgcn {

struct RunRequest {
  RunSettings settings;
  std::string store, run;  // folders. store: may be empty if a run is resumed; run: empty: runs/NAME-N
  bool resume = false;
  uint32_t seeds = 1;  // several: each has a run of its own, in a folder below `run`
};

// Every rank of the group has one. The first has the folder, and the settings that all take.
class Run {
 public:
  // Checks what was given and opens the store. request and group outlive it.
  Run(RunRequest& request, dist::Group& group);
  void begin();                                      // makes or reopens the folder, settles the settings
  void begin_seed(const fs::path& all, uint64_t n);  // the same for one of several seeds
  void prepare();                                    // plans, partitions if that has not been done, computes A·X
  TrainingSummary train() { return training_->run(); }

  fs::path folder_of_seeds() const;  // refuses one that is in use unless it is resumed
  // Those that were asked for, and, if they are resumed, all that are in the folder.
  std::vector<uint64_t> seeds(const fs::path& folder) const;

  const Dataset& data() const { return data_; }
  const fs::path& folder() const { return training_->directory().path(); }
  const Dataset& training_data() const { return training_->input().layout.data; }  // what training sees of it

 private:
  RunRequest& request_;
  dist::Group& group_;
  std::optional<Store> store_;
  Dataset data_;
  std::optional<RunDirectory> directory_;
  std::optional<Training> training_;
  bool settled_ = false;

  void settle_once();
  void begin_in(const fs::path& folder, bool resume, std::optional<uint64_t> seed);
};

}  // namespace cgcn
