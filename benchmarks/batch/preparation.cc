// What preparing batches costs, compared with the training step that uses them, on one store and one shape of network.
//
//   bench_batch_preparation STORE PARTS Q LAYERS HIDDEN [STEPS]
//
// Both are timed alone, on the same batches; then the queue runs as in training, and what the trainer waits for it
// counts.
#include <fmt/format.h>

#include <cstdlib>

#include "batch/batch_queue.h"
#include "batch/cluster_batches.h"
#include "common/timer.h"
#include "nn/adam.h"
#include "nn/model.h"

namespace {

using namespace cgcn;

int run(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr, "usage: bench_batch_preparation STORE PARTS Q LAYERS HIDDEN [STEPS]\n");
    return 2;
  }
  const auto number = [&](int i) { return static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
  const Store store(argv[1]);
  PartitionOptions partition;
  partition.parts = number(2);
  partition.method = PartitionMethod::kMetis;
  const ClusterLayout layout = ensure_partition(store, partition).layout;
  ModelOptions network;
  network.layers = number(4);
  network.hidden = number(5);
  network.normalisation = NormalisationKind::kSelfDiagonal;
  const FeatureMatrix product = aggregated_features(layout, network.product_normalisation());
  const ClusterBatches batches(layout,
                               {.clusters_per_batch = number(3), .normalisation = network.layer_normalisation()});
  const Dataset& data = layout.data;
  Model model(
      network,
      {data.features.columns(), !data.features.is_dense(), data.labels.num_classes(), data.labels.multi_label()}, 1);
  model.reserve(batches.limits());
  Adam adam({}, model);
  const ModelInput input{data.features, product, data.labels};
  const uint32_t steps = std::min(argc > 6 ? number(6) : 30u, batches.batches_per_epoch());

  double preparing = 0, training = 0, waiting = 0, nodes = 0, entries = 0;
  const auto storage = batches.make_storage();
  for (uint32_t i = 0; i < steps; ++i) {
    Timer timer;
    batches.prepare(0, i, *storage);
    preparing += timer.seconds();
    timer.restart();
    model.compute_gradients(storage->batch, input, 1);
    adam.step(model, 0.01f);
    training += timer.seconds();
    nodes += static_cast<double>(storage->batch.inputs.size());
    entries += static_cast<double>(storage->batch.adjacencies[0].forward.num_entries());
  }
  BatchQueue queue(batches, 1, 2);
  for (uint32_t i = 0; i < steps; ++i) {
    const Timer timer;
    const Batch& batch = queue.next();
    waiting += timer.seconds();
    model.compute_gradients(batch, input, 1);
    adam.step(model, 0.01f);
  }
  fmt::print("{} p {} q {}, {} x {}: {:.0f} nodes and {:.0f} entries per batch, {} steps\n", data.name,
             layout.num_clusters(), number(3), network.layers, network.hidden, nodes / steps, entries / steps, steps);
  fmt::print(
      "  prepare {:.3f} ms, train {:.1f} ms per step: {:.2f} %; with the queue training waits {:.3f} ms ({:.2f} %)\n",
      1e3 * preparing / steps, 1e3 * training / steps, 100 * preparing / training, 1e3 * waiting / steps,
      100 * waiting / training);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "error: {}\n", problem.what());
    return 1;
  }
}
