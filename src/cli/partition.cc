// clustergcn partition: clusters for a store's nodes, the layout in their order, A·X, and how good they are.
#include "partition/partition.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "cli/command.h"
#include "common/descriptor.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/progress.h"
#include "common/timer.h"
#include "partition/quality.h"

namespace cgcn {
namespace {

using nlohmann::json;

enum class Product { kMean, kSum, kNone };

// One program at a time makes partitions of a store: what --force replaces is a folder that another may be writing to.
// On a file system without such locks nobody waits.
class StoreHold {
 public:
  explicit StoreHold(const fs::path& store) : folder_(store, O_RDONLY | O_DIRECTORY) {
    for (bool told = false; folder_.is_open() && ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0; told = true) {
      if (errno != EWOULDBLOCK && errno != EINTR) return;
      if (!told) log::note("another program is partitioning {}: waiting for it", store.string());
      throw_if_interrupted();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  FileDescriptor folder_;
};

struct PartitionCommand {
  CLI::App* command = nullptr;
  CommonOptions common;
  PartitionOptions partition;
  MemoryOptions memory;
  std::string store;
  uint32_t clusters_per_batch = 1;
  Product product = Product::kMean;
  OptionList options;
  std::vector<std::string> notes;

  void list_options() {
    partition.list_options(options);
    options.begin_group("Besides");
    options.add("per-batch", &clusters_per_batch, "clusters q in a batch that the figures are given for")
        .range(1, 4e9)
        .value("Q");
    options.add_choice("aggregate", &product,
                       {{"mean", Product::kMean}, {"sum", Product::kSum}, {"none", Product::kNone}},
                       "which A·X to compute now, for the training nodes and for all; none: when training needs it");
    options.add("force", &partition.replace, "make the partition and A·X again if they are there");
    memory.list_options(options);
    common.list_options(options);
  }

  void run() {
    apply_common_options(common);
    notes = note_unused_options(*command, options, [&](const Option& option) {
      return partition.uses(option.name()) ? std::string() : "another partitioner takes it";
    });
    const uint64_t budget = memory.budget();
    Stages stages(/*apart=*/true);
    stages.begin("open the store");
    const StoreHold hold(store);
    const Store opened(store);
    stages.end();
    const bool aggregates = product != Product::kNone;
    partition.take_memory(budget, opened, [&] { return aggregates ? least_aggregation_memory(opened.dataset()) : 0; });
    const Normalisation normalisation{product == Product::kSum ? NormalisationKind::kSum : NormalisationKind::kMean};
    if (aggregates && partition.replace) forget_aggregated(opened, normalisation);
    bool all_aggregated = false;
    const Timer timer;
    const PartitionResult result = ensure_partition(opened, partition, &stages, [&](uint64_t left) {
      if (!aggregates || left < aggregation_memory(opened.dataset())) return false;
      try {
        aggregated_features(opened, normalisation, left);
        all_aggregated = true;
      } catch (const Error& problem) {  // METIS's work is not to be lost: once more when the partition is there
        log::note("A·X of all nodes: {}; trying again after the partition", problem.problem());
      }
      return true;
    });
    if (aggregates) {
      const auto release = [&] {
        opened.release_pages();
        result.layout.files->release_pages();
      };
      stages.begin("A·X, the partition's nodes");
      release();
      aggregated_features(result.layout, normalisation, memory_left(budget));
      if (!all_aggregated) {
        stages.begin("A·X, all nodes");
        release();
        aggregated_features(opened, normalisation, memory_left(budget));
      }
    }
    stages.end();
    const double seconds = timer.seconds();
    stages.begin("figures");
    const PartitionQuality quality = measure_quality(result.layout, clusters_per_batch, partition.seed);
    stages.end();
    print(opened, result, quality, stages, seconds);
  }

  // What the multilevel partitioner did, finest level first.
  static void print_levels(const json& record) {
    if (!record.contains("levels")) return;
    fmt::print("\n  {:>5} {:>14} {:>16} {:>10} {:>10} {:>10}\n", "level", "nodes", "edges", "coarsen", "METIS",
               "refine");
    size_t number = 0;
    for (const json& level : record.at("levels")) {
      const auto seconds = [&](const char* what) {
        const double value = level.at(what).get<double>();
        return value > 0 ? format_seconds(value) : std::string();
      };
      fmt::print("  {:>5} {:>14} {:>16} {:>10} {:>10} {:>10}\n", number++,
                 format_count(level.at("nodes").get<uint64_t>()), format_count(level.at("entries").get<uint64_t>() / 2),
                 seconds("coarsen_seconds"), seconds("partition_seconds"), seconds("refine_seconds"));
    }
  }

  // seconds: all but opening the store and the figures.
  void print(const Store& opened, const PartitionResult& result, const PartitionQuality& quality, const Stages& stages,
             double seconds) const {
    const std::string name = result.layout.path.filename().string();
    if (common.json) {
      json steps = json::array();
      double preprocessing = seconds + stages.list()[0].seconds;  // all but METIS and the figures
      for (const auto& stage : stages.list()) {
        steps.push_back({{"stage", stage.name}, {"seconds", stage.seconds}, {"peak_rss", stage.peak_rss}});
        if (stage.name == "METIS") preprocessing -= stage.seconds;
      }
      const json& record = result.layout.files->extra().at("partition");
      const json report = {{"partition", name},
                           {"path", result.layout.path.string()},
                           {"reused", result.reused},
                           {"options", record.at("options")},
                           {"levels", record.value("levels", json::array())},
                           {"bytes", result.layout.files->bytes_on_disk()},
                           {"store_bytes", opened.bytes_on_disk()},
                           {"quality", quality.to_json()},
                           {"preprocessing_seconds", preprocessing},
                           {"stages", steps},
                           {"notes", notes}};
      fmt::print("{}\n", to_text(report, 2));
      return;
    }
    fmt::print("{}{}\n\n{}", name, result.reused ? ": already there, nothing to do" : "", quality.to_table());
    if (common.quiet) return;
    fmt::print("\n  {:30} {:>10} {:>12}\n", "stage", "time", "peak memory");
    for (const auto& stage : stages.list())
      fmt::print("  {:30} {:>10} {:>12}\n", stage.name, format_seconds(stage.seconds), format_bytes(stage.peak_rss));
    print_levels(result.layout.files->extra().at("partition"));
    fmt::print("\n  {} on disk, {:.2f} × the store\n", format_bytes(result.layout.files->bytes_on_disk()),
               static_cast<double>(result.layout.files->bytes_on_disk()) / static_cast<double>(opened.bytes_on_disk()));
  }
};

}  // namespace

void add_partition_command(CLI::App& program) {
  auto state = std::make_shared<PartitionCommand>();
  CLI::App* command = program.add_subcommand("partition", "Partition a graph store into clusters");
  state->command = command;
  command->add_option("store", state->store, "the graph store")->required();
  state->list_options();
  bind_options(*command, state->options);
  command->callback([state] { state->run(); });
}

}  // namespace cgcn
