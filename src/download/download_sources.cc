// Where the public data sets are. Sizes and checksums are those of the publishers' files if we have read them.
#include "common/error.h"
#include "download/download.h"

namespace cgcn {
namespace {

constexpr const char* kGraphSage = "http://snap.stanford.edu/graphsage";
constexpr const char* kOgb = "http://snap.stanford.edu/ogb/data/nodeproppred";
constexpr const char* kPlanetoid = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data";

DownloadSource graphsage(const std::string& name) {
  const std::string prefix = name + "/" + name;
  return {.name = name,
          .format = "graphsage",
          .base_url = kGraphSage,
          .files = {{name + ".zip"}},
          .members = {prefix + "-G.json", prefix + "-feats.npy", prefix + "-id_map.json", prefix + "-class_map.json"},
          .inside = prefix + "-G.json"};
}

DownloadSource ogb(const std::string& name, const std::string& folder, const std::string& split) {
  DownloadSource source{
      .name = name, .format = "ogb", .base_url = kOgb, .files = {{folder + ".zip"}}, .members = {}, .inside = folder};
  for (const char* file : {"edge", "num-node-list", "num-edge-list", "node-feat", "node-label"})
    source.members.push_back(folder + "/raw/" + file + ".csv.gz");
  for (const char* role : {"train", "valid", "test"})
    source.members.push_back(folder + "/split/" + split + "/" + role + ".csv.gz");
  return source;
}

DownloadSource planetoid(const std::string& name, std::vector<RemoteFile> files) {
  return {.name = name,
          .format = "planetoid",
          .base_url = kPlanetoid,
          .files = std::move(files),
          .members = {},
          .inside = ""};
}

}  // namespace

const std::vector<DownloadSource>& download_sources() {
  static const std::vector<DownloadSource> sources{
      graphsage("ppi"),
      graphsage("reddit"),
      ogb("ogbn-products", "products", "sales_ranking"),
      ogb("ogbn-arxiv", "arxiv", "time"),
      planetoid("cora", {{"ind.cora.x", 22119, 0x2000c09fe34bcee3},
                         {"ind.cora.y", 4054, 0xa137a736431b5d3d},
                         {"ind.cora.tx", 148025, 0x224672a456f418cc},
                         {"ind.cora.ty", 28135, 0x06a8bbb07e8cf1ed},
                         {"ind.cora.allx", 257305, 0x8222effbc11d47dd},
                         {"ind.cora.ally", 47959, 0x1a19f9f307d4be7f},
                         {"ind.cora.graph", 59847, 0x777be8099e54ef3b},
                         {"ind.cora.test.index", 5000, 0x2fd27cf61394a76d}}),
      planetoid("citeseer", {{"ind.citeseer.x", 31087, 0xf72ccf8c67f79d3d},
                             {"ind.citeseer.y", 3014, 0xc365101a7a6626e9},
                             {"ind.citeseer.tx", 260321, 0x3c3199ca76011cce},
                             {"ind.citeseer.ty", 24135, 0xbca0fbd74f0e4f4d},
                             {"ind.citeseer.allx", 595021, 0xc1b244d12a264004},
                             {"ind.citeseer.ally", 55623, 0xf8b61eae8845aeae},
                             {"ind.citeseer.graph", 61987, 0x8449b374c266008c},
                             {"ind.citeseer.test.index", 5000, 0x916b9649ea11c45c}}),
      planetoid("pubmed", {{"ind.pubmed.x"},
                           {"ind.pubmed.y"},
                           {"ind.pubmed.tx"},
                           {"ind.pubmed.ty"},
                           {"ind.pubmed.allx"},
                           {"ind.pubmed.ally"},
                           {"ind.pubmed.graph"},
                           {"ind.pubmed.test.index"}}),
  };
  return sources;
}

const DownloadSource& find_download(const std::string& name) {
  std::string known;
  for (const DownloadSource& source : download_sources()) {
    if (source.name == name) return source;
    known += (known.empty() ? "" : ", ") + source.name;
  }
  throw Error(fmt::format("unknown data set '{}'", name), "DATASET", "one of " + known);
}

}  // namespace cgcn
