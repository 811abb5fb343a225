#include "engine/partition.h"

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "common/descriptor.h"
#include "common/error.h"
#include "common/interrupt.h"
#include "common/log.h"

namespace cgcn {
namespace {

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

// A·X of the layout and of the whole store; that of the store is computed while METIS runs if memory allows it.
class Products {
 public:
  Products(const PartitionRequest& request, const Store& store, uint64_t budget)
      : wanted_(request.product != PartitionRequest::Product::kNone),
        normalisation_{request.product == PartitionRequest::Product::kSum ? NormalisationKind::kSum
                                                                          : NormalisationKind::kMean},
        store_(store),
        budget_(budget) {
    if (wanted_ && request.partition.replace) forget_aggregated(store, normalisation_);
  }

  uint64_t least_memory() const { return wanted_ ? least_aggregation_memory(store_.dataset()) : 0; }

  bool compute_beside_metis(uint64_t left) {
    if (!wanted_ || left < aggregation_memory(store_.dataset())) return false;
    try {
      aggregated_features(store_, normalisation_, left);
      of_store_done_ = true;
    } catch (const Error& problem) {  // METIS's work is not to be lost: once more when the partition is there
      log::note("A·X of all nodes: {}; trying again after the partition", problem.problem());
    }
    return true;
  }

  void compute(const ClusterLayout& layout, PartitionStages& stages) {
    if (!wanted_) return;
    const auto release = [&] {
      store_.release_pages();
      layout.files->release_pages();
    };
    stages.begin(PartitionStage::kProductOfLayout);
    release();
    aggregated_features(layout, normalisation_, memory_left(budget_));
    if (of_store_done_) return;
    stages.begin(PartitionStage::kProductOfStore);
    release();
    aggregated_features(store_, normalisation_, memory_left(budget_));
  }

 private:
  bool wanted_, of_store_done_ = false;
  Normalisation normalisation_;
  const Store& store_;
  uint64_t budget_;
};

}  // namespace

void PartitionRequest::list_options(OptionList& list) {
  partition.list_options(list);
  list.begin_group("Other");
  list.add("per-batch", &clusters_per_batch, "clusters per batch (q) for the printed figures").range(1, 4e9).value("Q");
  list.add_choice("aggregate", &product, {{"mean", Product::kMean}, {"sum", Product::kSum}, {"none", Product::kNone}},
                  "which A·X to compute now, for the training nodes and for all; none: when training needs it");
  list.add("force", &partition.replace, "make the partition and A·X again if they exist");
  memory.list_options(list);
}

PartitionReport partition_store(const fs::path& store, const PartitionRequest& request) {
  const Timer timer;
  const Store opened(store);
  const double seconds = timer.seconds();
  PartitionReport report = partition_store(opened, request);
  report.stages.insert(report.stages.begin(), {PartitionStage::kOpenStore, seconds, memory_figures().peak_rss});
  report.preprocessing_seconds += seconds;
  return report;
}

PartitionReport partition_store(const Store& opened, PartitionRequest request) {
  const uint64_t budget = request.memory.budget();
  const StoreHold hold(opened.path());
  PartitionStages stages(/*apart=*/true);
  Products products(request, opened, budget);
  request.partition.take_memory(budget, opened, [&] { return products.least_memory(); });
  const Timer timer;
  PartitionReport report;
  report.result = ensure_partition(opened, request.partition, &stages,
                                   [&](uint64_t left) { return products.compute_beside_metis(left); });
  products.compute(report.result.layout, stages);
  stages.end();
  report.preprocessing_seconds = timer.seconds();
  for (const auto& stage : stages.list())
    if (stage.stage == PartitionStage::kMetis || stage.stage == PartitionStage::kMultilevel)
      report.preprocessing_seconds -= stage.seconds;
  stages.begin(PartitionStage::kFigures);
  report.quality = measure_quality(report.result.layout, request.clusters_per_batch, request.partition.seed);
  stages.end();
  report.stages = stages.list();
  report.store_bytes = opened.bytes_on_disk();
  return report;
}

nlohmann::json PartitionReport::to_json() const {
  nlohmann::json steps = nlohmann::json::array();
  for (const auto& stage : stages)
    steps.push_back({{"stage", name_of(stage.stage)}, {"seconds", stage.seconds}, {"peak_rss", stage.peak_rss}});
  return {{"partition", name()},
          {"path", result.layout.path.string()},
          {"reused", result.reused},
          {"options", record().at("options")},
          {"levels", record().value("levels", nlohmann::json::array())},
          {"bytes", bytes()},
          {"store_bytes", store_bytes},
          {"quality", quality.to_json()},
          {"preprocessing_seconds", preprocessing_seconds},
          {"stages", steps}};
}

}  // namespace cgcn
