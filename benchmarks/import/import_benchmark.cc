// How fast text becomes a graph, on one core: edges parsed alone, and whole imports into a store (bytes of the source).
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <charconv>

#include "common/log.h"
#include "common/random.h"
#include "common/threads.h"
#include "io/reader.h"
#include "io/serialised/json_reader.h"
#include "io/text/edge_table.h"

namespace cgcn {
namespace {

constexpr NodeId kNodes = 200'000;
constexpr size_t kEdges = 3'000'000;

// Files that are made once and go away with the program.
class Sources {
 public:
  Sources() {
    log::set_level(log::Level::kQuiet);
    set_thread_count(1);
    std::string pattern = fs::temp_directory_path() / "cgcn-import-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    OutputFile csv(csv_path()), json(json_path());
    std::string nodes;
    for (NodeId v = 0; v < kNodes; ++v) nodes += fmt::format("{}{{\"id\": {}, \"val\": false}}", v == 0 ? "" : ", ", v);
    json.write("{\"nodes\": [" + nodes + "], \"links\": [");
    Random random(1, Purpose::kTest);
    for (size_t i = 0; i < kEdges; ++i) {
      const NodeId u = random.below(kNodes), v = random.below(kNodes);
      csv.write(fmt::format("{},{}\n", u, v));
      json.write(fmt::format("{}{{\"source\": {}, \"target\": {}}}", i == 0 ? "" : ", ", u, v));
    }
    json.write("]}");
    csv.commit();
    json.commit();
  }
  ~Sources() { fs::remove_all(folder_); }
  fs::path csv_path() const { return folder_ / "edges.csv"; }
  fs::path json_path() const { return folder_ / "x-G.json"; }
  fs::path store_path() const { return folder_ / "store"; }

 private:
  fs::path folder_;
};

const Sources& sources() {
  static const Sources made;
  return made;
}

void parse_edge_csv(benchmark::State& state) {
  const fs::path path = sources().csv_path();
  for (auto _ : state) {
    NodeIndex index = NodeIndex::open(/*fast=*/true);
    EdgeList edges = read_edge_table(path, look_at_edges(path), index);
    benchmark::DoNotOptimize(edges);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * fs::file_size(path)));
}

void parse_json_links(benchmark::State& state) {
  const fs::path path = sources().json_path();
  for (auto _ : state) {
    EdgeList edges;
    JsonReader json(path);
    json.enter_object();
    for (std::string_view key; json.next_key(key);) {
      if (key != "links") {
        json.skip();
        continue;
      }
      for (json.enter_array(); json.next_element();) {
        NodeId ends[2] = {};
        json.enter_object();
        for (std::string_view name; json.next_key(name);) {
          const std::string_view word = json.read_word();
          std::from_chars(word.data(), word.data() + word.size(), ends[name == "target" ? 1 : 0]);
        }
        edges.add(ends[0], ends[1]);
      }
    }
    benchmark::DoNotOptimize(edges);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * fs::file_size(path)));
}

void import_source(benchmark::State& state, const fs::path& path) {
  const ImportOptions options;
  for (auto _ : state) {
    ImportReport report;
    StoreWriter writer(sources().store_path(), StagedDirectory::Existing::kReplace);
    choose_reader(path, options).read(path, options, writer, report);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * fs::file_size(path)));
}

void import_edge_csv(benchmark::State& state) { import_source(state, sources().csv_path()); }
void import_graphsage_json(benchmark::State& state) { import_source(state, sources().json_path()); }

BENCHMARK(parse_edge_csv)->Unit(benchmark::kMillisecond);
BENCHMARK(parse_json_links)->Unit(benchmark::kMillisecond);
BENCHMARK(import_edge_csv)->Unit(benchmark::kMillisecond);
BENCHMARK(import_graphsage_json)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cgcn

BENCHMARK_MAIN();
