// All formats of one graph give the same content hash, in whatever way NumPy, SciPy and pickle write it: Fortran order,
// big-endian, wide and narrow types, .npy versions 2 and 3, compressed members, CSR, CSC and COO, protocols 0 to 5.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "io_support.h"

namespace cgcn {
namespace {

class BinaryFormats : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    const std::string script = CGCN_SOURCE_DIR "/tests/io/write_formats.py";
    written_ = std::system(("python3 " + script + " " + folder_->path().string() + " 2>/dev/null").c_str()) == 0 ||
               std::system(("/usr/bin/python3 " + script + " " + folder_->path().string()).c_str()) == 0;
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override {
    if (!written_) GTEST_SKIP() << "python3 with numpy and scipy is not on this machine";
  }

  // The hash of every source in the group, which must be one.
  static std::string common_hash(const std::string& group, size_t least) {
    std::map<std::string, std::vector<std::string>> by_hash;
    for (const auto& entry : fs::directory_iterator(*folder_ / group)) {
      const test::TemporaryFolder target;
      by_hash[test::import(entry.path(), target / "store").content_hash].push_back(entry.path().filename());
    }
    EXPECT_EQ(by_hash.size(), 1u) << ::testing::PrintToString(by_hash);
    EXPECT_GE(by_hash.begin()->second.size(), least);
    return by_hash.begin()->first;
  }

  static test::TemporaryFolder* folder_;
  static bool written_;
};
test::TemporaryFolder* BinaryFormats::folder_ = nullptr;
bool BinaryFormats::written_ = false;

TEST_F(BinaryFormats, OneGraphHasOneHash) {
  const std::set<std::string> hashes = {common_hash("dense", 24), common_hash("sparse", 16), common_hash("multi", 4),
                                        common_hash("weighted", 4)};
  EXPECT_EQ(hashes.size(), 4u) << "graphs that differ have the same hash";
}

TEST_F(BinaryFormats, PlanetoidKeepsItsName) {
  const test::TemporaryFolder target;
  ImportReport report;
  test::import(*folder_ / "sparse" / "planetoid2" / "ind.some.graph", target / "store", {}, &report);
  EXPECT_EQ(report.name, "some");
}

TEST_F(BinaryFormats, ClassNamesAreReadAsTextAndFromPickles) {
  for (const char* source : {"dense/benchmark", "sparse/benchmark"}) {
    const test::TemporaryFolder target;
    const Dataset data = test::import(folder_->path() / source, target / "store");
    EXPECT_THAT(data.class_names, ::testing::ElementsAre("a", "b", "c", "d", "é")) << source;
  }
}

TEST_F(BinaryFormats, OptionsDoWhatTheySay) {
  const test::TemporaryFolder target;
  const fs::path source = *folder_ / "dense" / "once";
  ImportOptions options;
  options.split = "50/25/25";
  options.seed = 3;
  const Dataset drawn = test::import(source, target / "a", options);
  EXPECT_EQ(drawn.split_sizes(), (std::array<uint64_t, 3>{60, 30, 30}));
  const Dataset again = test::import(source, target / "b", options);
  EXPECT_EQ(drawn.content_hash, again.content_hash);
  options.seed = 4;
  EXPECT_NE(test::import(source, target / "c", options).content_hash, drawn.content_hash);
  ImportOptions directed;
  directed.directed = true;
  const Dataset kept = test::import(source, target / "d", directed);
  EXPECT_TRUE(kept.graph.directed());
  EXPECT_LT(kept.graph.num_entries(), drawn.graph.num_entries());
  ImportOptions files;
  files.labels = (source / "split.npy").string();
  EXPECT_EQ(test::import(source, target / "e", files).labels.num_classes(), 3u);
  files.format = "planetoid";
  EXPECT_THAT(test::import_error(*folder_ / "sparse" / "planetoid2", files), ::testing::HasSubstr("--labels"));
}

// A copy of a source with one file changed.
class BrokenCopy : public BinaryFormats {
 protected:
  static std::string error_with(const fs::path& source, const std::string& file, const std::string& bytes) {
    const test::TemporaryFolder folder;
    fs::copy(*folder_ / source.string(), folder / "g", fs::copy_options::recursive);
    bytes.empty() ? (void)fs::remove(folder / "g" / file) : test::write_bytes(folder / "g" / file, bytes);
    return test::import_error(folder / "g");
  }
  static std::string content(const std::string& path) { return read_text_file(*folder_ / path); }
};

TEST_F(BrokenCopy, OfPlanetoidIsNamed) {
  using ::testing::HasSubstr;
  const std::string ids = content("sparse/planetoid2/ind.some.test.index");
  const std::string rest = ids.substr(ids.find('\n') + 1), second = rest.substr(0, rest.find('\n') + 1);
  const auto index_error = [](const std::string& text) {
    return error_with("sparse/planetoid2", "ind.some.test.index", text);
  };
  EXPECT_THAT(index_error(rest), HasSubstr("lists 39 nodes, but tx has 40 rows"));
  EXPECT_THAT(index_error(second + rest), HasSubstr("twice"));
  EXPECT_THAT(index_error("x\n" + rest), HasSubstr("test.index:1: holds something that is no node id"));
  EXPECT_THAT(index_error("-5\n" + rest), HasSubstr("names test node -5"));
  EXPECT_THAT(index_error("7\n" + rest), HasSubstr("names test node 7, but the test nodes follow the 80 of allx"));
  EXPECT_THAT(index_error("4000000000\n" + rest), HasSubstr("names test node 4000000000, but"));
  const auto part_error = [](const std::string& part, const std::string& bytes) {
    return error_with("sparse/planetoid2", "ind.some." + part, bytes);
  };
  EXPECT_THAT(part_error("allx", ""), HasSubstr("ind.some.allx: no such file"));
  EXPECT_THAT(part_error("allx", content("sparse/planetoid2/ind.some.graph")),
              HasSubstr("does not hold a SciPy CSR matrix"));
  EXPECT_THAT(part_error("ally", content("sparse/planetoid2/ind.some.y")), HasSubstr("holds labels of 30 nodes"));
  EXPECT_THAT(part_error("graph", content("sparse/planetoid2/ind.some.y")), HasSubstr("does not hold a dict of lists"));
  const std::string graph = content("sparse/planetoid2/ind.some.graph");
  EXPECT_THAT(part_error("graph", graph.substr(0, graph.size() / 2)), HasSubstr("it is cut off"));
  EXPECT_THAT(part_error("graph", std::string("\x80\x02}K\x00]K\xC8"
                                              "as.",
                                              11)),
              HasSubstr("edge 0 names node 200"));
}

TEST_F(BrokenCopy, OfGraphSaintIsNamed) {
  using ::testing::HasSubstr;
  const auto error = [](const std::string& file, const std::string& text) {
    return error_with("dense/saint", file, text);
  };
  EXPECT_THAT(error("role.json", R"({"tr": [0, 1, 120]})"), HasSubstr("names node 120, but there are 120 nodes"));
  EXPECT_THAT(error("role.json", R"({"tr": [0, -1]})"), HasSubstr("names node -1"));
  EXPECT_THAT(error("role.json", R"({"tr": [0], "te": [0]})"), HasSubstr("node 0 is in more than one part"));
  EXPECT_THAT(error("role.json", R"({"train": [0]})"), HasSubstr("none of tr, va and te"));
  EXPECT_THAT(error("role.json", R"({"tr": [0, 1)"), HasSubstr("role.json"));
  EXPECT_THAT(error("role.json", ""), HasSubstr("role.json: no such file"));
  EXPECT_THAT(error("class_map.json", R"({"500": 1})"), HasSubstr("class_map.json"));
  EXPECT_THAT(error("class_map.json", R"({"0": [0, 2]})"), HasSubstr("must be 0 or 1"));
  EXPECT_THAT(error("feats.npy", content("dense/saint/role.json")), HasSubstr("is not a .npy file"));
  EXPECT_THAT(error("adj_full.npz", "PK"), HasSubstr("is not an .npz file"));
}

TEST_F(BrokenCopy, OfRedditAndBenchmarkIsNamed) {
  using ::testing::HasSubstr;
  EXPECT_THAT(error_with("dense/dgl", "reddit_graph.npz", ""), HasSubstr("reddit_graph.npz: no such file"));
  EXPECT_THAT(error_with("dense/dgl", "reddit_data.npz", content("dense/dgl/reddit_graph.npz")),
              HasSubstr("has no array 'label'"));
  const std::string data = content("dense/dgl/reddit_data.npz");
  EXPECT_THAT(error_with("dense/dgl", "reddit_data.npz", data.substr(0, data.size() / 2)),
              HasSubstr("its end is missing"));
  const std::string some = content("sparse/benchmark/some.npz");
  EXPECT_THAT(error_with("sparse/benchmark", "some.npz", some.substr(0, some.size() / 2)),
              HasSubstr("some.npz: broken .npz: its end is missing"));
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "half.npz", some.substr(0, some.size() / 2));
  EXPECT_THAT(test::import_error(folder / "half.npz"), HasSubstr("half.npz: broken .npz: its end is missing"));
  EXPECT_THAT(error_with("sparse/benchmark", "split.npy", test::npy_bytes<uint8_t>({0, 1}, {2})),
              HasSubstr("holds roles of 2 nodes, but the graph has 120"));
}

}  // namespace
}  // namespace cgcn
