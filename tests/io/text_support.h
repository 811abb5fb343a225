// One random graph, written in every text format and as plain .npy, so that the readers can be compared.
#pragma once

#include <zlib.h>

#include "common/random.h"
#include "io_support.h"

namespace cgcn::test {

inline void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  write_bytes(path, text);
}

inline void write_gzip(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

struct TextGraph {
  NodeId n;
  uint32_t columns = 3, classes = 4;
  bool multi_label;
  std::vector<std::pair<NodeId, NodeId>> edges;
  std::vector<float> features;
  std::vector<int32_t> labels;  // n, or n × classes of 0/1
  std::vector<uint8_t> split;

  // Duplicates, self-loops and isolated nodes included. The last class is always there.
  TextGraph(NodeId nodes, size_t num_edges, bool multi, uint64_t seed) : n(nodes), multi_label(multi) {
    Random random(seed, Purpose::kTest);
    for (size_t i = 0; i < num_edges; ++i) edges.emplace_back(random.below(n), random.below(n));
    for (size_t i = 0; i < size_t{n} * columns; ++i) features.push_back(random.normal());
    for (NodeId v = 0; v < n; ++v) {
      split.push_back(v < 2 ? 0 : std::array<uint8_t, 4>{0, 1, 2, 255}[random.below(4)]);
      if (!multi) labels.push_back(v == 0 ? 3 : static_cast<int32_t>(random.below(classes)));
      for (uint32_t c = 0; multi && c < classes; ++c) labels.push_back(static_cast<int32_t>(random.below(2)));
    }
  }

  void write_plain(const fs::path& folder) const {
    fs::create_directories(folder);
    std::vector<int32_t> ends;
    for (const auto& [u, v] : edges) ends.insert(ends.end(), {static_cast<int32_t>(u), static_cast<int32_t>(v)});
    write_npy<int32_t>(folder / "edge_index.npy", ends, {edges.size(), 2});
    write_npy<float>(folder / "features.npy", features, {n, columns});
    if (multi_label)
      write_npy<int32_t>(folder / "labels.npy", labels, {n, classes});
    else
      write_npy<int32_t>(folder / "labels.npy", labels, {n});
    write_npy<uint8_t>(folder / "split.npy", split, {n});
  }

  std::string edge_text(const std::string& separator, const std::string& ending = "\n") const {
    std::string text;
    for (const auto& [u, v] : edges) text += fmt::format("{}{}{}{}", u, separator, v, ending);
    return text;
  }
  std::string feature_text(const std::string& separator = ",", const std::string& ending = "\n") const {
    std::string text;
    for (size_t i = 0; i < features.size(); ++i)
      text += fmt::format("{:.9g}{}", features[i], (i + 1) % columns == 0 ? ending : separator);
    return text;
  }
  uint32_t label_columns() const { return multi_label ? classes : 1; }
  std::string label_text(const std::string& separator = ",", const std::string& ending = "\n") const {
    std::string text;
    for (size_t i = 0; i < labels.size(); ++i)
      text += fmt::format("{}{}", labels[i], (i + 1) % label_columns() == 0 ? ending : separator);
    return text;
  }
  std::string part_text(uint8_t role) const {
    std::string text;
    for (NodeId v = 0; v < n; ++v)
      if (split[v] == role) text += fmt::format("{}\n", v);
    return text;
  }

  void write_edges(const fs::path& folder) const {
    write_text(folder / "edges.csv", edge_text(","));
    write_text(folder / "features.csv", feature_text());
    write_text(folder / "labels.csv", label_text());
    write_text(folder / "train.txt", part_text(0));
    write_text(folder / "val.txt", part_text(1));
    write_text(folder / "test.txt", part_text(2));
  }

  void write_ogb(const fs::path& folder) const {
    write_gzip(folder / "raw" / "edge.csv.gz", edge_text(","));
    write_gzip(folder / "raw" / "node-feat.csv.gz", feature_text());
    write_gzip(folder / "raw" / "node-label.csv.gz", label_text());
    write_gzip(folder / "raw" / "num-node-list.csv.gz", fmt::format("{}\n", n));
    write_gzip(folder / "raw" / "num-edge-list.csv.gz", fmt::format("{}\n", edges.size()));
    write_gzip(folder / "split" / "random" / "train.csv.gz", part_text(0));
    write_gzip(folder / "split" / "random" / "valid.csv.gz", part_text(1));
    write_gzip(folder / "split" / "random" / "test.csv.gz", part_text(2));
  }

  enum class LinkEnds { kPositions, kIntegerIds, kTextIds };
  // The list of nodes comes in another order than the rows, so that positions, ids and rows all differ.
  void write_graphsage(const fs::path& folder, const std::string& name, LinkEnds ends, bool links_first = false) const {
    const auto at = [&](size_t i) { return static_cast<NodeId>((i * 7 + 3) % n); };  // n and 7 share no factor
    std::vector<size_t> position(n);
    std::string nodes, links, id_map, class_map;
    const auto id = [&](NodeId v) {
      return ends == LinkEnds::kIntegerIds ? fmt::format("{}", v + 1000) : fmt::format("\"t3_{}\"", v);
    };
    const auto key = [&](NodeId v) { return ends == LinkEnds::kIntegerIds ? fmt::format("\"{}\"", v + 1000) : id(v); };
    for (size_t i = 0; i < n; ++i) {
      const NodeId v = at(i);
      position[v] = i;
      nodes += fmt::format("{}{{\"id\": {}, \"feature\": [1, {{}}]", i == 0 ? "" : ", ", id(v));
      if (split[v] != 255) nodes += fmt::format(", \"val\": {}, \"test\": {}", split[v] == 1, split[v] == 2);
      nodes += "}";
      std::string label;
      for (uint32_t c = 0; c < label_columns(); ++c)
        label += fmt::format("{}{}", c == 0 ? "" : ", ", labels[size_t{v} * label_columns() + c]);
      id_map += fmt::format("{}{}: {}", i == 0 ? "" : ", ", key(v), v);
      class_map += fmt::format("{}{}: {}", i == 0 ? "" : ", ", key(v), multi_label ? "[" + label + "]" : label);
    }
    const auto end = [&](NodeId v) { return ends == LinkEnds::kPositions ? std::to_string(position[v]) : id(v); };
    for (const auto& [u, v] : edges)
      links += fmt::format("{}{{\"test_removed\": false, \"target\": {}, \"source\": {}}}", links.empty() ? "" : ", ",
                           end(v), end(u));
    nodes = "\"nodes\": [" + nodes + "]";
    links = "\"links\": [" + links + "]";
    write_text(folder / (name + "-G.json"), "{\"directed\": false, \"graph\": {\"name\": \"x\\u00e9\"}, " +
                                                (links_first ? links + ", " + nodes : nodes + ", " + links) +
                                                ", \"multigraph\": false}");
    write_text(folder / (name + "-id_map.json"), "{" + id_map + "}");
    write_text(folder / (name + "-class_map.json"), "{" + class_map + "}\n");
    write_bytes(folder / (name + "-feats.npy"),
                npy_bytes(std::vector<double>(features.begin(), features.end()), {n, columns}, "<f8"));
  }
};

}  // namespace cgcn::test
