#include "partition/link_picture.h"

#include <algorithm>
#include <mutex>

#include "common/threads.h"
#include "partition/quality.h"

namespace cgcn {

LinkPicture draw_links(const ClusterLayout& layout, uint32_t most) {
  const uint32_t p = layout.num_clusters();
  const size_t groups = std::min(p, most);
  LinkPicture picture;
  Buffer<uint32_t> group_of(layout.data.num_nodes());
  for (size_t g = 0; g < groups; ++g) {
    const auto first = static_cast<uint32_t>(uint64_t{p} * g / groups);
    const auto last = static_cast<uint32_t>(uint64_t{p} * (g + 1) / groups);
    const NodeId begin = layout.cluster_offsets[first], end = layout.cluster_offsets[last];
    std::fill(group_of.begin() + begin, group_of.begin() + end, static_cast<uint32_t>(g));
    picture.first_cluster.push_back(first);
    picture.nodes.push_back(end - begin);
  }
  picture.first_cluster.push_back(p);
  picture.entries.resize(groups * groups);
  std::mutex adding;
  parallel_blocks(group_of.size(), 1 << 16, [&](size_t begin, size_t end) {
    std::vector<uint64_t> counts(groups * groups);
    for (size_t v = begin; v < end; ++v)
      for (const NodeId u : layout.data.graph.neighbours(static_cast<NodeId>(v)))
        ++counts[group_of[v] * groups + group_of[u]];
    layout.data.graph.release_rows(begin, end);
    const std::lock_guard lock(adding);
    for (size_t i = 0; i < counts.size(); ++i) picture.entries[i] += counts[i];
  });
  return picture;
}

nlohmann::json LinkPicture::to_json() const {
  return {{"first_cluster", first_cluster}, {"nodes", nodes}, {"entries", entries}};
}

nlohmann::json describe_clusters(const ClusterLayout& layout, uint32_t clusters_per_batch, uint64_t seed) {
  nlohmann::json json = measure_quality(layout, clusters_per_batch, seed).to_json();
  std::vector<NodeId> sizes;
  for (uint32_t c = 0; c < layout.num_clusters(); ++c)
    sizes.push_back(layout.cluster_offsets[size_t{c} + 1] - layout.cluster_offsets[c]);
  json["sizes"] = sizes;
  json["blocks"] = draw_links(layout).to_json();
  const nlohmann::json& record = layout.files->extra().at("partition");
  if (record.contains("levels")) json["levels"] = record.at("levels");
  return json;
}

}  // namespace cgcn
