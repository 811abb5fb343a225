// How fast each method's batches are made: edges per second on one thread, on one store.
//
//   bench_samplers STORE LAYERS TARGETS [EPOCHS]
//
// Edges are the entries of all layers; VR-GCN's also reads every neighbour for its history, which is counted apart.
#include <fmt/format.h>

#include <cstdlib>

#include "batch/methods.h"
#include "common/timer.h"

namespace {

using namespace cgcn;

int run(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_samplers STORE LAYERS TARGETS [EPOCHS]\n");
    return 2;
  }
  const auto number = [&](int i) { return static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
  const Store store(argv[1]);
  const uint32_t layers = number(2), epochs = argc > 4 ? number(4) : 1;
  fmt::print("{:<12} {:>12} {:>16} {:>20} {:>18}\n", "method", "ms per batch", "edges per batch", "million edges/s",
             "history entries");
  for (const auto& [name, method] : {std::pair("cluster", Method::kCluster), std::pair("sgd", Method::kSgd),
                                     std::pair("graphsage", Method::kGraphSage), std::pair("fastgcn", Method::kFastGcn),
                                     std::pair("vrgcn", Method::kVrGcn)}) {
    MethodOptions options;
    options.method = method;
    options.targets = number(3);
    const ClusterLayout layout = ensure_partition(store, options.partition({})).layout;
    const auto source = make_batch_source(options, layout, {.clusters_per_batch = 1, .normalisation = {}}, layers);
    const auto storage = source->make_storage();
    source->prepare(0, 0, *storage);  // the first one allocates
    double links = 0, history = 0, batches = 0;
    const Timer timer;
    for (uint32_t epoch = 0; epoch < epochs; ++epoch)
      for (uint32_t index = 0; index < source->batches_per_epoch(); ++index, ++batches) {
        source->prepare(epoch, index, *storage);
        links += static_cast<double>(method == Method::kCluster ? storage->batch.adjacencies[0].forward.num_entries()
                                                                : storage->batch.num_links(layers));
        for (const Remainder& remainder : storage->batch.remainders)
          history += static_cast<double>(remainder.of_history.num_entries());
      }
    const double seconds = timer.seconds();
    fmt::print("{:<12} {:>12.3f} {:>16.0f} {:>20.1f} {:>18.0f}\n", name, 1e3 * seconds / batches, links / batches,
               1e-6 * links / seconds, history / batches);
  }
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
