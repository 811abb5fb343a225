#include "partition/partition.h"

#include <algorithm>
#include <numeric>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/mapping_faults.h"
#include "common/memory.h"
#include "common/memory_budget.h"
#include "common/progress.h"
#include "common/random.h"
#include "partition/assignment.h"
#include "partition/layout.h"
#include "partition/metis.h"
#include "partition/multilevel.h"

namespace cgcn {
namespace {

using nlohmann::json;

bool uses_metis(const PartitionOptions& options) {
  return options.from.empty() &&
         (options.method == PartitionMethod::kMetis || options.method == PartitionMethod::kMetisRecursive);
}
bool may_use_metis(const PartitionOptions& options) {
  return uses_metis(options) || (options.from.empty() && options.method == PartitionMethod::kAuto);
}
// Whether a partitioner looks for clusters with few edges between them.
bool searches(const PartitionOptions& options) {
  return may_use_metis(options) || (options.from.empty() && options.method == PartitionMethod::kMultilevel);
}

constexpr uint32_t kNodesPerCluster = 1000;  // if the number of parts is left to us

// A method with its settings, as it is recorded: what does not matter to the method is left out, so that it cannot tell
// two equal partitions apart.
json describe(const PartitionOptions& options, uint32_t parts, const std::string& file_digest) {
  PartitionOptions named = options;
  OptionList list;
  named.list_options(list);
  const json all = list.to_json();
  json kept = {{"method", all.at("partitioner")}, {"transductive", all.at("transductive")}};
  if (options.method == PartitionMethod::kFile) {
    kept["clusters"] = file_digest;
    return kept;
  }
  kept["parts"] = parts;
  kept["seed"] = all.at("partition-seed");
  for (const char* name : {"objective", "imbalance", "node-weights"})
    if (list.find(name)->why_unused().empty()) kept[name] = all.at(name);
  return kept;
}

// "metis-50-1f2e3d4c": readable, and another one for every other setting.
std::string default_name(const json& description) {
  const std::string text = description.dump();
  const std::string parts =
      description.contains("parts") ? fmt::format("-{}", description["parts"].get<uint32_t>()) : "";
  return fmt::format("{}{}-{}", description["method"].get<std::string>(), parts,
                     hex64(checksum(text.data(), text.size())).substr(0, 8));
}

// What a partition was made from. The layout copies all of it, so that a change of any makes it stale.
json describe_source(const Store& store) {
  json source = {{"graph", store.meta().at("graph_hash")}, {"content", store.meta().at("content_hash")}};
  for (const auto& [name, array] : store.meta().at("arrays").items())
    if (name.starts_with("node_ids")) source[name] = array.at("checksum");
  return source;
}

// The one that is there, or an Error that says why it is not the one meant.
Store open_existing(const fs::path& path, const json& description, const json& source, const Store& store) {
  const std::string where = path.string();
  const std::string remedy =
      "'clustergcn partition' with --force makes it again; another --partition-name leaves it alone";
  const Store partition = [&] {
    try {
      return Store(path);
    } catch (const Error& problem) {
      throw Error(problem.problem(), problem.where(), remedy);
    }
  }();
  for (const char* field : {"/partition/source/graph", "/partition/options"})
    if (!partition.extra().contains(json::json_pointer(field)))
      throw Error("is a graph store, but not a partition", where, remedy);
  const json& made = partition.extra().at("partition");
  if (made.at("source").at("graph") != source.at("graph"))
    throw Error("the partition was made for another graph", where, remedy);
  if (made.at("source") != source)
    throw Error("the partition is stale: the store's features, labels, split or ids have changed since", where, remedy);
  if (made.at("options") != description)
    throw Error(fmt::format("the partition was made with other options: {}", made.at("options").dump()), where, remedy);
  for (const auto& [what, field] : {std::pair{"features", "columns"}, {"features", "kind"}, {"labels", "classes"}})
    if (const json& here = partition.meta().at(what).at(field), &there = store.meta().at(what).at(field); here != there)
      throw Error(fmt::format("the partition is damaged: its {} {} are {}, the store's {}", what, field, here.dump(),
                              there.dump()),
                  where, remedy);
  return partition;
}

// --parts together with a file is a claim about it.
void check_file_parts(const PartitionOptions& options, uint32_t clusters) {
  if (options.method == PartitionMethod::kFile && options.parts > 0 && options.parts != clusters)
    throw Error(fmt::format("puts the {} into {} clusters, not the {} of --parts",
                            options.transductive ? "nodes" : "training nodes", clusters, options.parts),
                options.from, "leave --parts out");
}

// What is asked for, and where it is kept.
struct Request {
  Request(const Store& store, const Dataset& data, const PartitionOptions& given)
      : options(given.settled_for(data)), nodes(chosen_nodes(data, options)) {
    parts = options.parts_of(nodes.size());
    std::string file_digest;
    if (options.method == PartitionMethod::kFile) {
      numbers = read_partition_file(options.from, data.num_nodes());
      file_digest = hex64(checksum(numbers.data(), numbers.size() * sizeof(uint32_t)));
    }
    description = describe(options, parts, file_digest);
    const fs::path name = fs::path("partitions") / (options.name.empty() ? default_name(description) : options.name);
    path = options.replace ? store.place_for(name) : store.derived(name);
  }
  bool is_there() const {
    std::error_code ignored;
    return !options.replace && fs::exists(path, ignored);
  }
  // What finding the clusters takes at least.
  uint64_t partitioner_memory(uint64_t entries, const Dataset& data) const {
    if (parts == 1 || parts == nodes.size()) return 0;
    if (options.method == PartitionMethod::kMultilevel)
      return least_multilevel_memory(data.num_nodes(), entries, data.graph.directed());
    return uses_metis(options) ? estimate_metis_memory(nodes.size(), entries) : 0;
  }

  PartitionOptions options;
  std::vector<NodeId> nodes;
  uint32_t parts = 0;
  Buffer<uint32_t> numbers;  // of the file, if there is one
  json description;
  fs::path path;
};

void check_disk_space(const Store& store, const fs::path& path) {
  const uint64_t needed = store.bytes_on_disk() + (uint64_t{1} << 20), found = free_disk_space(path);
  if (found < needed)
    throw Error(
        fmt::format("a partition may take {} of disk space; {} are free", format_bytes(needed), format_bytes(found)),
        path.string(), "free some disk space");
}

}  // namespace

void PartitionOptions::list_options(OptionList& list) {
  list.begin_group("Partition");
  constexpr const char* kOther = "another partitioner takes it";
  const auto is_searched = [this] { return searches(*this); };
  list.add("parts", &parts, "number of clusters (p); 0: one per thousand nodes or so")
      .range(0, 4e9)
      .value("P")
      .common();
  list.add_choice("partitioner", &method,
                  {{"auto", PartitionMethod::kAuto},
                   {"metis", PartitionMethod::kMetis},
                   {"metis-recursive", PartitionMethod::kMetisRecursive},
                   {"multilevel", PartitionMethod::kMultilevel},
                   {"random", PartitionMethod::kRandom},
                   {"file", PartitionMethod::kFile}},
                  "how to partition the graph; auto: metis, or multilevel for 10 million edges and more");
  list.add("from", &from, "file with the cluster number of every node, .npy or text")
      .value("FILE")
      .resumable();  // bound to the run by the hash of the partition
  list.add_choice("objective", &objective, {{"cut", PartitionObjective::kCut}, {"volume", PartitionObjective::kVolume}},
                  "what METIS minimises: edges cut, or communication volume")
      .needs([this] { return may_use_metis(*this); }, kOther);
  list.add("imbalance", &imbalance, "metis and multilevel: largest cluster / mean")
      .range(1.001, 1000)
      .needs(is_searched, kOther);
  list.add_choice(
          "node-weights", &node_weights,
          {{"uniform", NodeWeights::kUniform}, {"labelled", NodeWeights::kLabelled}, {"degree", NodeWeights::kDegree}},
          "metis and multilevel: what to balance across clusters: nodes, labelled nodes as well, or edges")
      .needs(is_searched, kOther);
  list.add("transductive", &transductive, "train on all nodes and edges, with the labels of the training nodes only")
      .common();
  list.add("partition-seed", &seed, "random seed of the partition")
      .needs([this] { return searches(*this) || (from.empty() && method == PartitionMethod::kRandom); }, kOther);
  list.add("partition-name", &name, "folder under STORE/partitions; default: made from the options").value("NAME");
}

void PartitionOptions::take_memory(uint64_t budget, const Store& store, const std::function<uint64_t()>& later) {
  constexpr uint64_t kLeastBuffers = uint64_t{16} << 20;
  store.release_pages();
  const Dataset data = store.dataset();
  // Numbers, order and position of the nodes, and the offsets of the store and the layout.
  const uint64_t tables = uint64_t{data.num_nodes()} * 32, least_layout = tables + kLeastBuffers;
  const uint64_t both_ways = data.graph.directed() ? 2 : 1;
  const uint64_t taken = memory_figures().rss + kMemoryMargin, left = budget - std::min(budget, taken);
  memory = std::max(left, least_layout) - tables;
  metis_memory = left;
  if (left >= std::max(least_layout, estimate_metis_memory(data.num_nodes(), both_ways * data.graph.num_entries())))
    return;
  const Request request(store, data, *this);
  if (request.is_there()) return;
  const uint64_t entries =
      request.partitioner_memory(0, data) > 0 ? both_ways * count_entries(data, request.options) : 0;
  const uint64_t least = std::max(least_layout, request.partitioner_memory(entries, data));
  if (left >= least) return;
  const bool multilevel = request.options.method == PartitionMethod::kMultilevel;
  const std::string what =
      left >= least_layout
          ? fmt::format("{} on {} nodes and {} edges (--partitioner {} needs less)",
                        multilevel ? "the multilevel partitioner" : "METIS", format_count(request.nodes.size()),
                        format_count(entries / 2), multilevel ? "random" : "multilevel")
          : "a partition of this graph";
  refuse_budget(taken + std::max(least, later ? later() : 0), what);
}

uint32_t PartitionOptions::parts_of(uint64_t nodes) const {
  if (method == PartitionMethod::kFile && parts > 0) return parts;  // a claim about the file
  const uint64_t asked = parts > 0 ? parts : (nodes + kNodesPerCluster / 2) / kNodesPerCluster;
  return static_cast<uint32_t>(std::clamp<uint64_t>(asked, 1, nodes));
}

PartitionOptions PartitionOptions::settled() const {
  PartitionOptions options = *this;
  if (!from.empty() && (method == PartitionMethod::kAuto || method == PartitionMethod::kMetis))
    options.method = PartitionMethod::kFile;
  if (objective == PartitionObjective::kVolume && options.method == PartitionMethod::kAuto)
    options.method = PartitionMethod::kMetis;
  if (options.method == PartitionMethod::kFile && from.empty())
    throw Error("needs the file with the clusters", "--partitioner file", "--from FILE");
  if (options.method != PartitionMethod::kFile && !from.empty())
    throw Error("takes the clusters from a file, which is --partitioner file", "--from");
  if (objective == PartitionObjective::kVolume &&
      (method == PartitionMethod::kMetisRecursive || method == PartitionMethod::kMultilevel))
    throw Error(fmt::format("is not something that the {} partitioner can minimise",
                            method == PartitionMethod::kMultilevel ? "multilevel" : "metis-recursive"),
                "--objective volume", "--partitioner metis");
  if (name.find('/') != std::string::npos || name.starts_with('.'))
    throw Error("is a plain name, without '/' and not beginning with a dot", "--partition-name");
  return options;
}

PartitionOptions PartitionOptions::settled_for(const Dataset& data) const {
  PartitionOptions options = settled();
  const uint64_t both_ways = data.graph.directed() ? 2 : 1;
  if (options.method == PartitionMethod::kAuto)
    options.method = both_ways * data.graph.num_entries() < kMultilevelEntries ? PartitionMethod::kMetis
                                                                               : PartitionMethod::kMultilevel;
  return options;
}

void shuffle_clusters(std::span<uint32_t> clusters, uint64_t seed, uint32_t epoch) {
  std::iota(clusters.begin(), clusters.end(), 0u);
  Random(seed, Purpose::kBatchOrder, epoch).shuffle(clusters);
}

uint64_t ClusterLayout::table_bytes(const Dataset& data, uint64_t nodes) {
  const uint64_t labels = data.labels.stored_bytes();
  const uint64_t a_node =
      sizeof(EdgeOffset) + sizeof(NodeId) + sizeof(int64_t) + sizeof(uint8_t);  // offset, order, id, role
  return nodes * (a_node + labels / std::max<uint64_t>(1, data.num_nodes()));
}

std::optional<ClusterLayout> find_partition(const Store& store, const PartitionOptions& given) {
  try {
    const Request request(store, store.dataset(), given);
    if (!request.is_there()) return std::nullopt;
    return open_layout(
        std::make_shared<const Store>(open_existing(request.path, request.description, describe_source(store), store)),
        store.dataset().num_nodes());
  } catch (const Error&) {  // a stale one, or clusters from a file that is gone
    return std::nullopt;
  }
}

PartitionResult ensure_partition(const Store& store, const PartitionOptions& given, PartitionStages* stages,
                                 const WorkBesideMetis& beside) {
  PartitionStages unheard;
  if (stages == nullptr) stages = &unheard;
  PartitionResult result;
  const Dataset data = store.dataset();
  const Request request(store, data, given);
  const PartitionOptions& options = request.options;
  const std::vector<NodeId>& nodes = request.nodes;
  const json& description = request.description;
  const fs::path& path = request.path;
  if (request.parts < options.parts)
    log::note("{} parts were asked for and there are {} nodes: every node is a cluster of its own",
              format_count(options.parts), format_count(nodes.size()));
  const json source = describe_source(store);
  for (const fs::path& folder : {path.parent_path(), store.derived("cache")}) remove_stale_temporaries(folder);
  std::error_code ignored;
  const auto open = [&] {
    stages->begin(PartitionStage::kOpen);
    result.layout =
        open_layout(std::make_shared<const Store>(open_existing(path, description, source, store)), data.num_nodes());
    result.reused = true;
    remove_stale_temporaries(path / "aggregated");
    check_file_parts(options, result.layout.num_clusters());
    stages->end();
    return result;
  };
  if (request.is_there()) return open();
  check_disk_space(store, path);
  if (path.parent_path() != store.path() / "partitions")
    log::note("{} cannot be written to: its partition and A·X are kept in {}", store.path().string(),
              path.parent_path().parent_path().string());
  const Assignment assignment = options.method == PartitionMethod::kFile
                                    ? assign_from_file(request.numbers, nodes)
                                    : assign_clusters(data, nodes, request.parts, options, *stages, beside);
  check_file_parts(options, assignment.num_clusters);
  stages->begin(PartitionStage::kLayout);
  try {
    StoreWriter writer(path,
                       options.replace ? StagedDirectory::Existing::kReplace : StagedDirectory::Existing::kRefuse);
    write_layout(store, nodes, assignment, options.memory, writer);
    json record = {{"source", source}, {"options", description}};
    for (const LevelFigures& level : assignment.levels) record["levels"].push_back(level.to_json());
    writer.set_extra("partition", std::move(record));
    check_mappings();
    writer.finish(data.name, FeatureHash::kOfBytes);
  } catch (const Error&) {
    if (options.replace || !fs::exists(path, ignored)) throw;
    log::note("another program has just made this partition: using that one");
    return open();
  }
  result.layout = open_layout(std::make_shared<const Store>(path, Verify::kShapesOnly), data.num_nodes());
  stages->end();
  return result;
}

}  // namespace cgcn
