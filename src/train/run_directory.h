// What one training run leaves: configuration, metrics, checkpoints, and a record of the machine. Only this file knows
// where each of them is.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/file.h"

namespace cgcn {

class RunFiles {
 public:
  explicit RunFiles(fs::path folder) : folder_(std::move(folder)) {}

  const fs::path& folder() const { return folder_; }
  fs::path config() const { return folder_ / "config.toml"; }            // every option's value
  fs::path environment() const { return folder_ / "environment.json"; }  // program, machine, store
  fs::path choices() const { return folder_ / "choices.json"; }          // what `auto` chose, and why
  fs::path metrics() const { return folder_ / "metrics.jsonl"; }         // a line per epoch
  fs::path clusters() const { return folder_ / "clusters.json"; }        // how the graph was cut
  fs::path result() const { return folder_ / "result.json"; }  // scores, times and memory, once the run is at its end
  // Two principal components of the last hidden layer, of sampled nodes.
  fs::path embeddings() const { return folder_ / "embeddings.json"; }
  fs::path report() const { return folder_ / "report.html"; }
  // Held while a process trains; the kernel lets go of it when the process ends, however it ends.
  fs::path lock() const { return folder_ / "lock"; }

  // Checkpoints (checkpoint.h).
  fs::path last() const { return folder_ / "last.safetensors"; }
  fs::path best() const { return folder_ / "best.safetensors"; }
  // What was best before the last epoch was validated out of turn and did better; a longer run takes it back.
  fs::path regular_best() const { return folder_ / "best-regular.safetensors"; }
  // The best that last.safetensors speaks of, while a newer one is written and last.safetensors is not.
  fs::path former_best() const { return folder_ / "best-former.safetensors"; }
  fs::path optimiser(uint64_t step) const { return folder_ / fmt::format("optimiser-{}.safetensors", step); }
  std::vector<fs::path> optimisers() const;  // those that are there

 private:
  fs::path folder_;
};

class RunDirectory {
 public:
  // path empty: runs/NAME-N under the current directory, N the first that is free. A folder that exists is refused,
  // unless it holds nothing but what a training leaves that ended before it was a run.
  static RunDirectory create(const fs::path& path, const std::string& name);
  // To continue with a run. Error if it is none, or if a living process has it.
  static RunDirectory reopen(const fs::path& path);
  // Of a process that writes nothing: a rank of a group other than the first.
  static RunDirectory nowhere() { return {"/dev/null/no-run", -1, false}; }
  static bool is_run(const fs::path& path);
  static void require(const fs::path& path);  // Error if it is no run
  ~RunDirectory();                            // takes a new folder away again if it did not become a run
  RunDirectory(RunDirectory&&) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;

  const RunFiles& files() const { return files_; }
  bool is_new() const { return is_new_; }  // made here, not reopened
  const fs::path& path() const { return files_.folder(); }

  // Takes back what was written to a run that made no step; the folder goes with this object.
  void discard() const;

  // Whether a living process trains in the run.
  static bool is_held(const fs::path& path);

  void append_metrics(const nlohmann::json& record);
  // Drops the records of epochs from `epoch` on (a resumed run writes them again) and a torn last line.
  void drop_metrics_from(uint64_t epoch);

 private:
  RunDirectory(fs::path path, int lock, bool is_new) : files_(std::move(path)), lock_(lock), is_new_(is_new) {}
  static int take_lock(const fs::path& path);
  RunFiles files_;
  int lock_ = -1;
  bool is_new_;
};

// The whole lines of a metrics file; a last one that is half-written is passed over. Error if one is not as written.
std::vector<nlohmann::json> read_metrics(const fs::path& file);

// The store that environment.json names; empty if there is no such file yet.
std::string recorded_store(const fs::path& run);

// Program, compiler, processor, memory, time, command line.
nlohmann::json describe_environment();

}  // namespace cgcn
