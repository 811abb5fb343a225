// METIS and the multilevel partitioner on one store, apart from the layout that follows: seconds, edges kept, balance,
// peak memory.
//
//   bench_partition STORE PARTS PARTITIONER [SEED] [--transductive]
//
// PARTITIONER: metis, multilevel, random; multilevel-quick and multilevel-thorough are the same with less and more
// effort.
#include <fmt/format.h>
#include <sys/resource.h>

#include <string>

#include "common/memory.h"
#include "common/timer.h"
#include "partition/assignment.h"
#include "partition/multilevel.h"

using namespace cgcn;

static double processor_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    seconds += static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
  return seconds;
}

int main(int count, char** arguments) {
  if (count < 4) return 1;
  const std::string method = arguments[3];
  PartitionOptions options;
  options.parts = static_cast<uint32_t>(std::atol(arguments[2]));
  options.method = method == "metis"    ? PartitionMethod::kMetis
                   : method == "random" ? PartitionMethod::kRandom
                                        : PartitionMethod::kMultilevel;
  if (count > 4) options.seed = static_cast<uint64_t>(std::atol(arguments[4]));
  options.transductive = count > 5;
  const Store store(arguments[1], Verify::kShapesOnly);
  const Dataset data = store.dataset();
  const std::vector<NodeId> nodes = chosen_nodes(data, options);
  const uint32_t parts = options.parts_of(nodes.size());
  PartitionStages stages;
  const Timer timer;
  Assignment assignment;
  if (method == "multilevel-quick" || method == "multilevel-thorough") {
    const MultilevelEffort effort =
        method == "multilevel-quick" ? MultilevelEffort{2, {0, 1}} : MultilevelEffort{8, {18, 10}};
    MultilevelRun run =
        partition_multilevel(make_level_graph(data, nodes, options.node_weights), parts, options, effort);
    assignment = {std::move(run.clusters), parts, {}};
  } else {
    assignment = assign_clusters(data, nodes, parts, options, stages, {});
  }
  const double seconds = timer.seconds(), processor = processor_seconds();
  uint64_t peak = memory_figures().peak_rss;
  for (const auto& stage : stages.list()) peak = std::max(peak, stage.peak_rss);
  Buffer<uint32_t> of(data.num_nodes(), kNoNode);
  std::vector<uint64_t> sizes(assignment.num_clusters);
  for (size_t i = 0; i < nodes.size(); ++i) {
    of[nodes[i]] = assignment.clusters[i];
    ++sizes[assignment.clusters[i]];
  }
  uint64_t kept = 0, all = 0;
  for (const NodeId v : nodes)
    for (const NodeId u : data.graph.neighbours(v)) {
      if (of[u] == kNoNode || u == v) continue;
      ++all;
      kept += of[u] == of[v] ? 1 : 0;
    }
  const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  fmt::print(
      "{} seed {}: {:.3f} s ({:.3f} s of processors), kept {:.3f} %, balance {:.3f}, {} clusters, peak {} bytes\n",
      arguments[3], options.seed, seconds, processor,
      100.0 * static_cast<double>(kept) / static_cast<double>(std::max<uint64_t>(all, 1)),
      static_cast<double>(largest) * assignment.num_clusters / static_cast<double>(nodes.size()),
      assignment.num_clusters, peak);
}
