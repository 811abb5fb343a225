#include "partition/quality.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/progress.h"
#include "common/random.h"
#include "common/threads.h"

namespace cgcn {
namespace {

constexpr size_t kMeasuredRows = 4096;
constexpr size_t kBins = 10, kBarCells = 24;

// Adjacency entries whose two ends have different values in `group`, over all rows; loops apart.
struct EntryCounts {
  uint64_t across = 0, loops = 0;
};
EntryCounts count_across(const CsrGraph& graph, std::span<const uint32_t> group) {
  std::vector<EntryCounts> found((graph.num_nodes() + kMeasuredRows - 1) / kMeasuredRows);
  parallel_blocks(graph.num_nodes(), kMeasuredRows, [&](size_t begin, size_t end) {
    EntryCounts counts;
    for (size_t v = begin; v < end; ++v)
      for (const NodeId u : graph.neighbours(static_cast<NodeId>(v))) {
        counts.across += group[u] != group[v] ? 1 : 0;
        counts.loops += u == v ? 1 : 0;
      }
    found[begin / kMeasuredRows] = counts;
    graph.release_rows(begin, end);
  });
  EntryCounts total;
  for (const EntryCounts& counts : found) {
    total.across += counts.across;
    total.loops += counts.loops;
  }
  return total;
}

double entropy_in_bits(std::span<const uint32_t> counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0;
  for (const uint32_t count : counts)
    if (count > 0) sum -= count / total * std::log2(count / total);
  return sum;
}

// The entropy of every cluster that has a label, where cluster c is the rows `row_at(offsets[c]) …`.
template <class RowAt>
std::vector<double> label_entropies(const ClusterLayout& layout, RowAt&& row_at) {
  const Labels& labels = layout.data.labels;
  std::vector<double> entropies;
  if (labels.regression()) return entropies;
  std::vector<uint32_t> counts(labels.num_classes());
  for (uint32_t c = 0; c < layout.num_clusters(); ++c) {
    std::fill(counts.begin(), counts.end(), 0);
    bool any = false;
    for (NodeId r = layout.cluster_offsets[c]; r < layout.cluster_offsets[size_t{c} + 1]; ++r) {
      const NodeId v = row_at(r);
      if (!labels.multi_label()) {
        if (labels.class_of(v) < 0) continue;
        ++counts[static_cast<size_t>(labels.class_of(v))];
        any = true;
      } else {
        for (uint32_t label = 0; label < labels.num_classes(); ++label)
          if (labels.has(v, label)) {
            ++counts[label];
            any = true;
          }
      }
    }
    if (any) entropies.push_back(entropy_in_bits(counts));
  }
  return entropies;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void measure_batches(const ClusterLayout& layout, std::span<const uint32_t> cluster_of, uint32_t q, uint64_t seed,
                     PartitionQuality& quality) {
  const uint32_t p = layout.num_clusters();
  quality.clusters_per_batch = std::clamp(q, 1u, p);
  quality.batches = (p + quality.clusters_per_batch - 1) / quality.clusters_per_batch;
  Buffer<uint32_t> order(p), batch_of_cluster(p), batch_of(layout.data.num_nodes());
  shuffle_clusters(order, seed, 0);
  for (uint32_t i = 0; i < p; ++i) batch_of_cluster[order[i]] = i / quality.clusters_per_batch;
  for (size_t v = 0; v < batch_of.size(); ++v) batch_of[v] = batch_of_cluster[cluster_of[v]];
  const CsrGraph& graph = layout.data.graph;
  const auto entries = static_cast<double>(graph.num_entries());
  const double kept = entries - static_cast<double>(count_across(graph, batch_of).across);
  quality.mean_batch_nodes = static_cast<double>(quality.nodes) / quality.batches;
  quality.mean_batch_entries = kept / quality.batches;
  quality.entries_in_batches = entries == 0 ? 1 : kept / entries;
}

std::string bar(uint32_t count, uint32_t largest) {
  const size_t cells = largest == 0 ? 0 : (count * kBarCells + largest - 1) / largest;
  std::string text;
  for (size_t i = 0; i < cells; ++i) text += "█";
  return text.append(kBarCells - cells, ' ');
}

// Both histograms over the same bins, side by side.
std::string histogram(const std::vector<double>& own, const std::vector<double>& random) {
  double top = 0;
  for (const auto* values : {&own, &random})
    for (const double value : *values) top = std::max(top, value);
  if (top == 0) top = 1;
  std::array<std::array<uint32_t, kBins>, 2> counts{};
  uint32_t largest = 0;
  for (size_t which = 0; which < 2; ++which)
    for (const double value : which == 0 ? own : random) {
      const auto bin = std::min(kBins - 1, static_cast<size_t>(value / top * kBins));
      largest = std::max(largest, ++counts[which][bin]);
    }
  std::string text =
      fmt::format("  {:13}  {:<{}}  {}\n", "entropy, bits", "clusters", kBarCells + 8, "random clusters, same sizes");
  for (size_t bin = 0; bin < kBins; ++bin)
    text += fmt::format("  {:5.2f} – {:5.2f}  {} {:>7}  {} {:>7}\n", top * static_cast<double>(bin) / kBins,
                        top * static_cast<double>(bin + 1) / kBins, bar(counts[0][bin], largest),
                        format_count(counts[0][bin]), bar(counts[1][bin], largest), format_count(counts[1][bin]));
  return text;
}

}  // namespace

PartitionQuality measure_quality(const ClusterLayout& layout, uint32_t clusters_per_batch, uint64_t seed) {
  const Dataset& data = layout.data;
  PartitionQuality quality;
  quality.nodes = data.num_nodes();
  quality.clusters = layout.num_clusters();
  quality.smallest = quality.largest = layout.cluster_offsets[1];
  Buffer<uint32_t> cluster_of(data.num_nodes());
  for (uint32_t c = 0; c < quality.clusters; ++c) {
    const NodeId begin = layout.cluster_offsets[c], end = layout.cluster_offsets[size_t{c} + 1];
    quality.smallest = std::min(quality.smallest, end - begin);
    quality.largest = std::max(quality.largest, end - begin);
    bool trained_on = false;
    for (NodeId v = begin; v < end; ++v) {
      cluster_of[v] = c;
      trained_on = trained_on || data.is_trained_on(v);
    }
    quality.clusters_without_labels += trained_on ? 0 : 1;
  }
  const EntryCounts counts = count_across(data.graph, cluster_of);
  const uint64_t directions = data.graph.directed() ? 1 : 2;
  quality.links = (data.graph.num_entries() - counts.loops) / directions + counts.loops;
  quality.links_cut = counts.across / directions;
  measure_batches(layout, cluster_of, clusters_per_batch, seed, quality);
  if (data.labels.present()) {
    quality.entropy = label_entropies(layout, [](NodeId r) { return r; });
    std::vector<NodeId> rows(data.num_nodes());
    std::iota(rows.begin(), rows.end(), NodeId{0});
    Random(seed, Purpose::kPartition, 1).shuffle(std::span<NodeId>(rows));
    quality.random_entropy = label_entropies(layout, [&](NodeId r) { return rows[r]; });
  }
  return quality;
}

nlohmann::json PartitionQuality::to_json() const {
  return {{"nodes", nodes},
          {"links", links},
          {"clusters", clusters},
          {"links_cut", links_cut},
          {"links_kept_share", share_kept()},
          {"smallest_cluster", smallest},
          {"largest_cluster", largest},
          {"mean_cluster", mean_size()},
          {"balance", balance()},
          {"clusters_without_labels", clusters_without_labels},
          {"batch",
           {{"clusters", clusters_per_batch},
            {"batches", batches},
            {"mean_nodes", mean_batch_nodes},
            {"mean_entries", mean_batch_entries},
            {"entries_share", entries_in_batches}}},
          {"label_entropy",
           {{"mean", mean(entropy)},
            {"random_mean", mean(random_entropy)},
            {"clusters", entropy},
            {"random", random_entropy}}}};
}

std::string PartitionQuality::to_table() const {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:30} {}\n", name, value);
  };
  line("clusters", fmt::format("{} of {:.1f} nodes ({} – {})", format_count(clusters), mean_size(),
                               format_count(smallest), format_count(largest)));
  line("balance, largest / mean", fmt::format("{:.3f}", balance()));
  line("edges kept within clusters",
       fmt::format("{:.1f} % ({} of {} cut)", 100 * share_kept(), format_count(links_cut), format_count(links)));
  if (clusters_without_labels > 0) line("clusters without a label", format_count(clusters_without_labels));
  line(fmt::format("batches of q = {}", clusters_per_batch).c_str(),
       fmt::format("{} per epoch, {:.0f} nodes, ‖A_BB‖₀ = {} on average; {:.1f} % of entries", format_count(batches),
                   mean_batch_nodes, format_count(static_cast<uint64_t>(std::llround(mean_batch_entries))),
                   100 * entries_in_batches));
  if (entropy.empty()) return text;
  line("label entropy, mean",
       fmt::format("{:.2f} bits; {:.2f} in random clusters of the same sizes", mean(entropy), mean(random_entropy)));
  return text + "\n" + histogram(entropy, random_entropy);
}

}  // namespace cgcn
