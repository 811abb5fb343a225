// What one training run leaves: configuration, metrics, checkpoints, and a record of the machine.
//
//   config.toml        every option's value
//   environment.json   program, machine, store
//   metrics.jsonl      a line an epoch
//   clusters.json      how the graph was cut
//   result.json        scores, times and memory, once the run is at its end
//   last.safetensors, best.safetensors, optimiser-STEP.safetensors   (checkpoint.h)
//   lock               held while a process trains; the kernel lets go of it when the process ends, however it ends
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/file.h"

namespace cgcn {

class RunDirectory {
 public:
  // path empty: runs/NAME-N under the current directory, N the first that is free. A folder that exists is refused,
  // unless it holds nothing but what a training leaves that ended before it was a run.
  static RunDirectory create(const fs::path& path, const std::string& name);
  // To go on with a run. Error where it is none, or where a living process has it.
  static RunDirectory reopen(const fs::path& path);
  static bool is_run(const fs::path& path);
  static void require(const fs::path& path);  // Error where it is no run
  ~RunDirectory();                            // takes a new folder away again if it did not become a run
  RunDirectory(RunDirectory&&) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;

  const fs::path& path() const { return path_; }
  fs::path config_file() const { return path_ / "config.toml"; }
  fs::path environment_file() const { return path_ / "environment.json"; }
  fs::path metrics_file() const { return path_ / "metrics.jsonl"; }
  fs::path result_file() const { return path_ / "result.json"; }
  fs::path clusters_file() const { return path_ / "clusters.json"; }

  // Takes back what was written to a run that made no step; the folder goes with this object.
  void discard() const;

  // Whether a living process trains in the run.
  static bool is_held(const fs::path& path);

  void append_metrics(const nlohmann::json& record);
  // Drops the records of epochs from `epoch` on (a resumed run writes them again) and a torn last line.
  void drop_metrics_from(uint64_t epoch);

 private:
  RunDirectory(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  static int take_lock(const fs::path& path);
  fs::path path_;
  int lock_ = -1;
};

// The whole lines of a metrics file; a last one that is half-written is passed over. Error where one is not as written.
std::vector<nlohmann::json> read_metrics(const fs::path& file);

// The store that environment.json names; empty where there is no such file yet.
std::string recorded_store(const fs::path& run);

// Program, compiler, processor, memory, time, command line.
nlohmann::json describe_environment();

}  // namespace cgcn
