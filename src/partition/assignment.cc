#include "partition/assignment.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <numeric>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/random.h"
#include "common/threads.h"
#include "graph/npy.h"
#include "partition/metis.h"

namespace cgcn {
namespace {

constexpr size_t kCountedRows = 4096;  // a task

// Every node anywhere, sizes that differ by one at most.
Buffer<uint32_t> assign_randomly(size_t n, uint32_t parts, uint64_t seed) {
  Buffer<uint32_t> clusters(n);
  for (size_t i = 0; i < n; ++i) clusters[i] = static_cast<uint32_t>(i * parts / n);
  Random(seed, Purpose::kPartition).shuffle(std::span<uint32_t>(clusters));
  return clusters;
}

// The numbers that occur, in rising order.
std::vector<uint32_t> numbers_in(std::span<const uint32_t> clusters) {
  std::vector<uint32_t> used;
  const uint32_t largest = *std::max_element(clusters.begin(), clusters.end());
  if (largest / 8 > clusters.size()) {  // those of a file may be anything
    used.assign(clusters.begin(), clusters.end());
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return used;
  }
  std::vector<bool> occurs(size_t{largest} + 1);
  for (const uint32_t cluster : clusters) occurs[cluster] = true;
  for (size_t c = 0; c < occurs.size(); ++c)
    if (occurs[c]) used.push_back(static_cast<uint32_t>(c));
  return used;
}

// Renumbers so that every cluster has a node. Numbers keep their order.
Assignment close_up(Buffer<uint32_t> clusters) {
  const std::vector<uint32_t> used = numbers_in(clusters);
  if (used.back() + 1 != used.size())
    for (uint32_t& cluster : clusters)
      cluster = static_cast<uint32_t>(std::lower_bound(used.begin(), used.end(), cluster) - used.begin());
  return {std::move(clusters), static_cast<uint32_t>(used.size()), {}};
}

template <class T>
Buffer<uint32_t> convert_numbers(std::span<const std::byte> bytes, const fs::path& file) {
  Buffer<uint32_t> numbers(bytes.size() / sizeof(T));
  for (size_t v = 0; v < numbers.size(); ++v) {
    T value;
    std::memcpy(&value, bytes.data() + v * sizeof(T), sizeof(T));
    if (value < T{0} || static_cast<uint64_t>(value) >= UINT32_MAX)
      throw Error(fmt::format("node {} has cluster {}; clusters are numbered from 0 to 4294967294", v, value),
                  file.string());
    numbers[v] = static_cast<uint32_t>(value);
  }
  return numbers;
}

Buffer<uint32_t> read_npy_numbers(const MappedFile& mapped) {
  const std::string where = mapped.path().string();
  const NpyHeader header = parse_npy_header(mapped.bytes(), where);
  const std::string dtype = header.dtype();
  if (header.shape.size() != 1)
    throw Error(fmt::format("has {} dimensions; a partition has one cluster number per node", header.shape.size()),
                where);
  const auto bytes = mapped.bytes().subspan(header.data_offset);
  if (dtype == "<i8") return convert_numbers<int64_t>(bytes, where);
  if (dtype == "<u8") return convert_numbers<uint64_t>(bytes, where);
  if (dtype == "<i4") return convert_numbers<int32_t>(bytes, where);
  if (dtype == "<u4") return convert_numbers<uint32_t>(bytes, where);
  if (dtype == "<i2") return convert_numbers<int16_t>(bytes, where);
  if (dtype == "<u2") return convert_numbers<uint16_t>(bytes, where);
  if (dtype == "|i1") return convert_numbers<int8_t>(bytes, where);
  if (dtype == "|u1") return convert_numbers<uint8_t>(bytes, where);
  throw Error(fmt::format("holds {}; cluster numbers are little-endian integers", dtype), where,
              "numpy.save(file, clusters.astype('int32'))");
}

Buffer<uint32_t> read_text_numbers(const MappedFile& mapped, NodeId num_nodes) {
  Buffer<uint32_t> numbers(num_nodes);
  size_t line = 0, found = 0;
  const std::string_view text = mapped.text();
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view field = text.substr(at, end - at);
    at = end + 1;
    while (!field.empty() && (field.back() == '\r' || field.back() == ' ' || field.back() == '\t'))
      field.remove_suffix(1);
    while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
    if (field.empty() && end >= text.size()) break;
    uint32_t number = 0;
    const auto [stop, problem] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (problem != std::errc{} || stop != field.data() + field.size() || number == UINT32_MAX)
      throw Error(fmt::format("'{}' is not a cluster number", field.substr(0, 40)),
                  fmt::format("{}:{}", mapped.path().string(), line + 1),
                  "one number from 0 a line, a line for each node of the store");
    if (found < num_nodes) numbers[found] = number;
    ++found;
  }
  if (found != num_nodes)
    throw Error(
        fmt::format("has {} cluster numbers; the store has {} nodes", format_count(found), format_count(num_nodes)),
        mapped.path().string(), "one for each node of the store, in its order");
  return numbers;
}

}  // namespace

std::vector<NodeId> chosen_nodes(const Dataset& data, const PartitionOptions& options) {
  std::vector<NodeId> nodes;
  if (options.transductive) {
    nodes.resize(data.num_nodes());
    std::iota(nodes.begin(), nodes.end(), NodeId{0});
  } else {
    nodes.reserve(data.split_sizes()[0]);
    for (NodeId v = 0; v < data.num_nodes(); ++v)
      if (data.role(v) == Role::kTrain) nodes.push_back(v);
  }
  if (!nodes.empty()) return nodes;
  if (options.transductive) throw Error("the graph has no nodes", data.path.string());
  throw Error(data.split.empty() ? "the store has no split, so there are no training nodes to partition"
                                 : "no node of the store is a training node",
              data.path.string(), "--transductive for a partition of all nodes, or import the data with a split");
}

uint64_t count_entries(const Dataset& data, const PartitionOptions& options) {
  const CsrGraph& graph = data.graph;
  if (options.transductive) return graph.num_entries();
  std::atomic<uint64_t> total = 0;
  parallel_blocks(data.num_nodes(), kCountedRows, [&](size_t begin, size_t end) {
    throw_if_interrupted();
    uint64_t entries = 0;
    for (auto v = static_cast<NodeId>(begin); v < end; ++v)
      if (data.role(v) == Role::kTrain)
        for (const NodeId u : graph.neighbours(v)) entries += data.role(u) == Role::kTrain ? 1 : 0;
    total += entries;
    graph.release_rows(begin, end);
  });
  return total;
}

Buffer<uint32_t> read_partition_file(const fs::path& file, NodeId num_nodes) {
  const MappedFile mapped(file);
  if (!mapped.text().starts_with("\x93NUMPY")) return read_text_numbers(mapped, num_nodes);
  Buffer<uint32_t> numbers = read_npy_numbers(mapped);
  if (numbers.size() != num_nodes)
    throw Error(fmt::format("has {} cluster numbers; the store has {} nodes", format_count(numbers.size()),
                            format_count(num_nodes)),
                file.string(), "one for each node of the store, in its order");
  return numbers;
}

Assignment assign_from_file(std::span<const uint32_t> numbers, std::span<const NodeId> nodes) {
  Buffer<uint32_t> clusters(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) clusters[i] = numbers[nodes[i]];
  return close_up(std::move(clusters));
}

Assignment assign_clusters(const Dataset& data, std::span<const NodeId> nodes, uint32_t parts,
                           const PartitionOptions& options, PartitionStages& stages, const WorkBesideMetis& beside) {
  CGCN_CHECK(parts >= 1 && parts <= nodes.size());
  Buffer<uint32_t> clusters;
  std::vector<LevelFigures> levels;
  if (parts == 1 || parts == nodes.size()) {  // nothing to decide, and where METIS is at its weakest
    clusters = Buffer<uint32_t>(nodes.size(), 0);
    if (parts > 1) std::iota(clusters.begin(), clusters.end(), 0u);
  } else if (options.method == PartitionMethod::kRandom) {
    stages.begin(PartitionStage::kRandom);
    clusters = assign_randomly(nodes.size(), parts, options.seed);
  } else if (options.method == PartitionMethod::kMultilevel) {
    stages.begin(PartitionStage::kGraph);
    LevelGraph graph = make_level_graph(data, nodes, options.node_weights, options.metis_memory);
    throw_if_interrupted();
    stages.begin(PartitionStage::kMultilevel);
    const Timer timer;
    MultilevelRun run = partition_multilevel(std::move(graph), parts, options);
    stages.end_as(timer.seconds(), std::max(memory_figures().peak_rss, run.metis_peak_rss));
    clusters = std::move(run.clusters);
    levels = std::move(run.levels);
  } else {
    stages.begin(PartitionStage::kMetisGraph);
    MetisGraph graph = make_metis_graph(data, nodes, options.node_weights);
    throw_if_interrupted();
    stages.begin(PartitionStage::kMetis);
    MetisRun run = run_metis(std::move(graph), parts, options, beside);
    stages.end_as(run.seconds, run.peak_rss);
    if (run.beside_seconds > 0) stages.add(PartitionStage::kBesideMetis, run.beside_seconds);
    clusters = std::move(run.clusters);
  }
  Assignment assignment = close_up(std::move(clusters));
  assignment.levels = std::move(levels);
  if (assignment.num_clusters < parts)
    log::note("METIS left {} of the {} parts empty: there are {} clusters", parts - assignment.num_clusters, parts,
              assignment.num_clusters);
  return assignment;
}

}  // namespace cgcn
