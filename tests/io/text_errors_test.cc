// Broken files of the text formats, each with the message that it must give: what is wrong, in which file and line.
#include <gmock/gmock.h>

#include <array>
#include <limits>

#include "text_support.h"

namespace cgcn {
namespace {

using ::testing::HasSubstr;

// A good folder in which one file is replaced, and what import must then say.
struct BrokenFile {
  const char* file;
  std::string text;
  const char* message;
};

std::string gzip_bytes(const std::string& text) {
  const test::TemporaryFolder folder;
  test::write_gzip(folder / "x.gz", text);
  return read_text_file(folder / "x.gz");
}

template <class WriteGood>
void expect_messages(const std::vector<BrokenFile>& cases, WriteGood&& write_good) {
  for (const BrokenFile& broken : cases) {
    SCOPED_TRACE(fmt::format("{} = {}", broken.file, broken.text.substr(0, 60)));
    const test::TemporaryFolder folder;
    write_good(folder / "g");
    test::write_text(folder / "g" / broken.file, broken.text);
    EXPECT_THAT(test::import_error(folder / "g"), HasSubstr(broken.message));
  }
}

TEST(EdgesReader, BrokenFilesGetTheirMessage) {
  const auto write_good = [](const fs::path& folder) {
    test::write_text(folder / "edges.csv", "0,1\n1,2\n");
    test::write_text(folder / "features.csv", "1,2\n3,4\n5,6\n");
    test::write_text(folder / "labels.csv", "0\n1\n0\n");
    test::write_text(folder / "train.txt", "0\n");
    test::write_text(folder / "val.txt", "1\n");
    test::write_text(folder / "test.txt", "2\n");
  };
  const std::string cut = gzip_bytes("0,1\n1,2\n");
  std::string flipped = cut;
  flipped[flipped.size() - 6] ^= 1;  // in the CRC
  expect_messages(
      {
          {"edges.csv", "0,1\n1,3\n", "edges.csv:2: node id 3 is out of range: features.csv gives 3 nodes, 0 to 2"},
          {"edges.csv", "0,1\n1,99999999999999999999\n",
           "edges.csv:2: node id '99999999999999999999' is not a whole number"},
          {"edges.csv", "0,1\n-1,2\n", "edges.csv:2: negative node id -1"},
          {"edges.csv", "0,1\nx,2\n", "edges.csv:2: node id 'x' is not a whole number"},
          {"edges.csv", "0,1\n1\n", "edges.csv:2: 1 columns, expected 2"},
          {"edges.csv", "0,1\n1,2,3\n", "edges.csv:2: 3 columns, expected 2"},
          {"edges.csv", "0,1\n1,\n", "edges.csv:2: a node id is missing"},
          {"edges.csv", "0\n1\n", "edges.csv:1: an edge needs two node ids"},
          {"edges.csv", "0,1,2,3\n", "edges.csv:1: has 4 columns"},
          {"edges.csv", "0,1,nan\n", "edges.csv:1: an edge weight is not a number (NaN)"},
          {"edges.csv", "0,1,-2\n", "edges.csv:1: negative edge weight '-2'"},
          {"edges.csv", "0,1,1\n0,2,inf\n", "edges.csv:2: an edge weight is infinite"},
          {"edges.csv", "0 1 {'weight': 3}\n", "edges.csv:1: has 4 columns"},
          {"edges.csv", "0,1,friend\n0,2,friend\n", "the third column is not a weight: 'friend'"},
          {"edges.csv", "\"0,1\n", "edges.csv:1: a quote is not closed"},
          {"edges.csv", "\"0\"x,1\n", "edges.csv:1: text follows a closing quote"},
          {"edges.csv",
           "\xFF\xFE"
           "0\0,\0",
           "edges.csv: is UTF-16 text"},
          {"edges.csv", cut.substr(0, cut.size() - 9), "edges.csv: is cut off: the gzip data ends too early"},
          {"edges.csv", flipped, "edges.csv: cannot be read: incorrect data check"},
          {"edges.csv", "\x89PNG\r\n\x1a\n", "edges.csv:1: an edge needs two node ids"},
          {"features.csv", "", "features.csv: is empty"},
          {"features.csv", "# nothing\n", "features.csv: is empty"},
          {"features.csv", "a,b\n", "features.csv: has no rows"},
          {"features.csv", "1,2\n3\n5,6\n", "features.csv:2: 1 columns, expected 2"},
          {"features.csv", "1,2\n3,nan\n5,6\n", "features.csv:2: missing values in column 2 (1)"},
          {"features.csv", "1,2\n3,\n5,6\n", "features.csv:2: missing values in column 2 (1)"},
          {"features.csv", "1,2\n3,1e60\n5,6\n", "features.csv:2: column 2 is infinite or beyond float32: '1e60'"},
          {"features.csv", "1,2\n3,0x10\n5,6\n", "features.csv:2: column 2 holds '0x10', which is not a number"},
          {"features.csv", "1,2\n",
           "edges.csv:1: 2 node ids of edges.csv, '1', '2', are out of range: features.csv gives 1 nodes"},
          {"features.csv", "id,x\n0,1\n1,2\n1,3\n", "features.csv:4: node '1' is listed twice"},
          {"features.csv", "id,x\n0,1\n1,2\n", "edges.csv:2: node '2' is not in features.csv"},
          {"features.csv", "id\n1\n", "node id"},
          {"labels.csv", "0\n1\n", "labels.csv: holds labels of 2 nodes, but the graph has 3"},
          {"labels.csv", "", "labels.csv: is empty"},
          {"labels.csv", "0,1\n1,1\n7,0\n", "labels.csv:3: node id 7 is out of range"},
          {"labels.csv", "0,1\n0,1\n", "labels.csv:2: node '0' is listed twice"},
          {"labels.csv", "0,1,0\n1,0,2\n1,1,1\n", "labels.csv:2: column 3 holds '2', but a label is 0 or 1"},
          {"labels.csv", "-1\n-1\n-1\n", "labels.csv: labels no node"},
          {"labels.csv", "0\n1\n99999999999\n", "class 99999999999 is larger than any class number"},
          {"labels.csv", "0\n1\ncaf\xE9\n", "labels.csv: the class name"},
          {"train.txt", "0\n5\n", "train.txt:2: node id 5 is out of range"},
          {"train.txt", "0\n-5\n", "train.txt:2: negative node id -5"},
          {"val.txt", "0\n", "val.txt:1: node 0 is in more than one part of the split"},
      },
      write_good);
}

TEST(EdgesReader, NothingButEmptyEdgesIsNoGraph) {
  const test::TemporaryFolder folder;
  for (const char* text : {"", "\n\n", "# nothing\n", "source,target\n"}) {
    test::write_text(folder / "edges.csv", text);
    EXPECT_THAT(test::import_error(folder / "edges.csv"), HasSubstr("edges.csv: the graph has no nodes")) << text;
  }
}

TEST(EdgesReader, IsolatedNodesNeedNoEdges) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "");
  test::write_text(folder / "g/features.csv", "1\n2\n");
  EXPECT_EQ(test::import(folder / "g", folder / "s").num_nodes(), 2u);
}

TEST(OgbReader, BrokenFilesGetTheirMessage) {
  const auto write_good = [](const fs::path& folder) {
    test::write_text(folder / "raw/edge.csv", "0,1\n1,2\n");
    test::write_text(folder / "raw/num-node-list.csv", "3\n");
    test::write_text(folder / "raw/num-edge-list.csv", "2\n");
    test::write_text(folder / "raw/node-feat.csv", "1,2\n3,4\n5,6\n");
    test::write_text(folder / "raw/node-label.csv", "0\n1\n0\n");
    test::write_text(folder / "split/time/train.csv", "0\n");
    test::write_text(folder / "split/time/valid.csv", "1\n");
    test::write_text(folder / "split/time/test.csv", "2\n");
  };
  {
    const test::TemporaryFolder folder;
    write_good(folder / "g");
    EXPECT_EQ(test::import(folder / "g", folder / "s").split_sizes(), (std::array<uint64_t, 3>{1, 1, 1}));
    fs::remove(folder / "g/split/time/valid.csv");
    EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("valid.csv is missing"));
    fs::remove(folder / "g/raw/num-node-list.csv");
    ImportOptions options;
    options.format = "ogb";
    EXPECT_THAT(test::import_error(folder / "g", options), HasSubstr("holds no edge.csv.gz and num-node-list.csv.gz"));
  }
  expect_messages(
      {
          {"raw/edge.csv", "0,1\n1,3\n", "edge.csv:2: node id 3 is out of range: num-node-list.csv gives 3 nodes"},
          {"raw/edge.csv", "0,1\n1,-2\n", "edge.csv:2: negative node id -2"},
          {"raw/edge.csv", "0,1\n", "edge.csv: holds 1 edges, but num-edge-list.csv says 2"},
          {"raw/edge.csv", "", "edge.csv: holds 0 edges, but num-edge-list.csv says 2"},
          {"raw/edge.csv", "0,1,1\n1,2,1\n", "edge.csv: has 3 columns, expected 2"},
          {"raw/num-node-list.csv", "", "num-node-list.csv: is empty"},
          {"raw/num-node-list.csv", "three\n", "num-node-list.csv:1: is not a count: 'three'"},
          {"raw/num-node-list.csv", "-3\n", "num-node-list.csv:1: is not a count: '-3'"},
          {"raw/num-node-list.csv", "0\n", "num-node-list.csv: the graph has no nodes"},
          {"raw/num-node-list.csv", "99999999999\n",
           "num-node-list.csv: 99999999999 nodes are more than a graph can have"},
          {"raw/num-node-list.csv", "2\n1\n", "num-node-list.csv:2: lists several graphs"},
          {"raw/num-node-list.csv", "4\n", "node-feat.csv: holds features of 3 nodes, but the graph has 4"},
          {"raw/node-feat.csv", "1,2\n3,4\n5,NaN\n", "node-feat.csv:3: missing values in column 2 (1)"},
          {"raw/node-feat.csv", "1,2\n3,4\n5,6\n7,8\n",
           "node-feat.csv: holds features of 4 nodes, but the graph has 3"},
          {"raw/node-label.csv", "0\n1\n", "node-label.csv: holds labels of 2 nodes, but the graph has 3"},
          {"raw/node-label.csv", "0,1\n1,0\n1,5\n", "node-label.csv:3: column 2 holds '5'"},
          {"split/time/train.csv", "0\n9\n", "train.csv:2: names node 9, but there are 3 nodes"},
          {"split/time/train.csv", "a\n", "train.csv:1: is not a node id: 'a'"},
          {"split/time/test.csv", "0\n", "test.csv:1: node 0 is in more than one part"},
          {"split/other/train.csv", "0\n", "holds several splits: other and time"},
      },
      write_good);
}

TEST(OgbReader, ADeclaredSizeAllocatesNothingBeforeTheFileIsRead) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edge.csv", "0,1\n");
  test::write_text(folder / "g/num-node-list.csv", "4000000000\n");
  test::write_text(folder / "g/num-edge-list.csv", "4000000000000\n");
  EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("edge.csv: holds 1 edges"));
  fs::remove(folder / "g/num-edge-list.csv");
  EXPECT_THAT(test::import_error(folder / "g"),
              HasSubstr("num-node-list.csv: speaks of 4,000,000,000 nodes, but there are 1 edges"));
  test::write_text(folder / "g/node-label.csv", "0\n1\n");
  EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("node-label.csv: holds labels of 2 nodes"));
}

TEST(GraphSageReader, BrokenFilesGetTheirMessage) {
  const auto write_good = [](const fs::path& folder) {
    test::write_text(folder / "x-G.json",
                     R"({"nodes": [{"id": "a", "val": false, "test": false}, {"id": "b", "val": true, "test": false}],
                         "links": [{"source": 0, "target": 1}]})");
    test::write_text(folder / "x-id_map.json", R"({"a": 0, "b": 1})");
    test::write_text(folder / "x-class_map.json", R"({"a": 0, "b": 1})");
    test::write_npy<float>(folder / "x-feats.npy", {1, 2, 3, 4}, {2, 2});
  };
  {
    const test::TemporaryFolder folder;
    write_good(folder / "g");
    EXPECT_EQ(test::import(folder / "g", folder / "s").split_sizes(), (std::array<uint64_t, 3>{1, 1, 0}));
    test::write_text(folder / "g/y-G.json", "{}");
    EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("holds several graphs: x-G.json and y-G.json"));
  }
  const std::string nodes = R"({"nodes": [{"id": "a"}, {"id": "b"}], "links": [)";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_messages(
      {
          {"x-G.json", "", "x-G.json: is empty"},
          {"x-G.json", "hello", "x-G.json:1: an object {…} expected, not 'h' (at byte 0)"},
          {"x-G.json", "[]", "x-G.json:1: an object {…} expected"},
          {"x-G.json", "{}", "x-G.json: has no list of nodes"},
          {"x-G.json", R"({"nodes": [{"id": "a"}]})", "x-G.json: has no list of edges (\"links\" or \"edges\")"},
          {"x-G.json", nodes + R"({"source": 0, "target": 1})", "x-G.json:1: the file is cut off"},
          {"x-G.json", nodes + "\n\n{\"source\": 0, \"targ", "x-G.json:3: the file is cut off"},
          {"x-G.json", nodes + R"({"source": 0, "target": 2}]})",
           "an edge's end 2 is neither a node id nor a position"},
          {"x-G.json", nodes + R"({"source": -1, "target": 1}]})", "an edge's end -1 is neither"},
          {"x-G.json", nodes + R"({"source": 0.5, "target": 1}]})", "neither text nor a whole number: '0.5'"},
          {"x-G.json", nodes + R"({"source": "z", "target": 1}]})", "an edge names node 'z', which is not listed"},
          {"x-G.json", nodes + R"({"source": 0}]})", "an edge without source or target"},
          {"x-G.json", nodes + R"({"source": 0, "target": 1, "weight": NaN}]})", "an edge's weight is nan"},
          {"x-G.json", nodes + R"({"source": 0, "target": 1}, {"source": 0, "target": 1, "weight": 2}]})",
           "some edges have weights, but the first has none"},
          {"x-G.json", nodes + R"([0, 1]]})", "an object {…} expected"},
          {"x-G.json", nodes + "]} {}", "text follows the end"},
          {"x-G.json", nodes + "]]", "',' or '}' expected"},
          {"x-G.json", R"({"nodes": [{"val": true}], "links": []})", "a node without an id"},
          {"x-G.json", R"({"nodes": [{"id": "a"}, {"id": "a"}], "links": []})", "a node is listed twice"},
          {"x-G.json", R"({"nodes": [{"id": "c"}], "links": []})", "node 'c' is not in the id map"},
          {"x-G.json", "{\"deep\": " + std::string(100'000, '[') + "}", "nested too deeply"},
          {"x-G.json", R"({"nodes": [{"id": "\ud800"}], "links": []})", "half a pair of \\u escapes"},
          {"x-id_map.json", R"({"a": 0, "b": 2})", "x-id_map.json:1: node 'b' has row 2, but there are 2 rows"},
          {"x-id_map.json", R"({"a": 0, "b": -1})", "node 'b' has row -1"},
          {"x-id_map.json", R"({"a": 0, "b": 0})", "two nodes have row 0"},
          {"x-id_map.json", R"({"a": 0, "a": 1})", "node 'a' is listed twice"},
          {"x-id_map.json", R"({"a": 0})", "names 1 nodes, but there are 2 rows of features"},
          {"x-id_map.json", R"({"a": "0", "b": 1})", "a number expected, not '0'"},
          {"x-class_map.json", R"({"c": 0})", "x-class_map.json:1: node 'c' is not listed in the graph"},
          {"x-class_map.json", R"({"a": 0, "b": [0, 1]})", "a list of 0/1, but others are single classes"},
          {"x-class_map.json", R"({"a": [1], "b": [0, 1]})", "2 labels, but the first node has 1"},
          {"x-class_map.json", R"({"a": [1, 7], "b": [0, 1]})", "a label is 7, but must be 0 or 1"},
          {"x-class_map.json", R"({"a": [], "b": []})", "there are no classes"},
          {"x-class_map.json", "{}", "x-class_map.json: labels no node"},
          {"x-feats.npy", "not numpy", "x-feats.npy: is not a .npy file"},
          {"x-feats.npy", test::npy_bytes<float>({1, 2, 3, nan}, {2, 2}), "features must be finite"},
          {"x-feats.npy", test::npy_bytes<float>({1, 2}, {1, 2}), "node 'b' has row 1, but there are 1 rows"},
          {"x-feats.npy", make_npy_header("<f4", std::vector<uint64_t>{1u << 30, 1u << 30}), "the file is cut off"},
      },
      write_good);
}

TEST(GraphSageReader, MissingFilesMeanWhatGraphSageTakesThemToMean) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "x-G.json",
                   "\xEF\xBB\xBF{\"edges\": [{\"source\": \"\\u00e9\\n\", \"target\": \"b\"}],\r\n"
                   "\"nodes\": [{\"id\": \"b\"}, {\"id\": \"\xC3\xA9\\n\"}]}\n\n");
  const Dataset data = test::import(folder / "x-G.json", folder / "s");
  EXPECT_EQ(data.num_nodes(), 2u);
  EXPECT_EQ(data.graph.num_edges(), 1u);
  EXPECT_EQ(data.features.kind(), FeatureMatrix::Kind::kIdentity);
  EXPECT_FALSE(data.labels.present());
  EXPECT_TRUE(data.split.empty());
  EXPECT_EQ(data.ids.text(1), "\xC3\xA9\n");
}

TEST(GraphSageReader, KeepsClassNamesAndWeights) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "x-G.json", R"({"nodes": [{"id": 7}, {"id": 9}, {"id": 8}],
      "links": [{"source": 7, "target": 8, "weight": 0.5}, {"source": 9, "target": 7}]})");
  test::write_text(folder / "x-class_map.json", R"({"9": "cat", "7": "dog", "8": null})");
  const Dataset data = test::import(folder / "x", folder / "s");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(data.labels.class_of(0), 1);
  EXPECT_EQ(data.labels.class_of(2), -1);
  ASSERT_EQ(data.graph.degree(0), 2u);
  EXPECT_EQ(data.graph.neighbour_weights(0)[1], 0.5f);
  EXPECT_EQ(data.ids.text(2), "8");
}

}  // namespace
}  // namespace cgcn
