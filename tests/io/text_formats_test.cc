// All formats of one graph give the same content hash, whatever way they say it.
#include <map>

#include "io/text/name_table.h"
#include "text_support.h"

namespace cgcn {
namespace {

using test::TextGraph;

std::string hash_of(const fs::path& source, const fs::path& store) { return test::import(source, store).content_hash; }

TEST(TextFormats, EveryFormatOfOneGraphHasTheSameHash) {
  for (const auto& [n, edges] : std::vector<std::pair<NodeId, size_t>>{{5, 4}, {40, 100}, {3001, 20'000}})
    for (const bool multi : {false, true}) {
      SCOPED_TRACE(fmt::format("{} nodes, multi-label {}", n, multi));
      const test::TemporaryFolder folder;
      const TextGraph graph(n, edges, multi, n);
      graph.write_plain(folder / "plain");
      graph.write_edges(folder / "edges");
      graph.write_ogb(folder / "ogb");
      const std::string expected = hash_of(folder / "plain", folder / "s0");
      EXPECT_EQ(hash_of(folder / "edges", folder / "s1"), expected);
      EXPECT_EQ(hash_of(folder / "ogb", folder / "s2"), expected);
      EXPECT_EQ(hash_of(folder / "ogb" / "raw", folder / "s3"), expected);
      graph.write_graphsage(folder / "sage", "positions", TextGraph::LinkEnds::kPositions);
      graph.write_graphsage(folder / "sage", "ids", TextGraph::LinkEnds::kIntegerIds, true);
      graph.write_graphsage(folder / "sage", "texts", TextGraph::LinkEnds::kTextIds);
      for (const char* name : {"positions", "ids", "texts"})
        EXPECT_EQ(hash_of(folder / "sage" / name, folder / (std::string("s-") + name)), expected) << name;
    }
}

TEST(TextFormats, UnusualButValidFilesReadTheSame) {
  const test::TemporaryFolder folder;
  const TextGraph graph(40, 100, false, 9);
  graph.write_plain(folder / "plain");
  const std::string expected = hash_of(folder / "plain", folder / "s");
  int stores = 0;
  const auto expect_same = [&](const std::string& what, const std::string& file, const std::string& text) {
    const fs::path source = folder / fmt::format("g{}", stores);
    graph.write_edges(source);
    fs::remove(source / (file.substr(0, file.find('.')) + ".csv"));
    test::write_text(source / file, text);
    EXPECT_EQ(hash_of(source, folder / fmt::format("t{}", stores++)), expected) << what;
  };
  const std::string edges = graph.edge_text(","), bom = "\xEF\xBB\xBF";
  expect_same("CRLF", "edges.csv", graph.edge_text(",", "\r\n"));
  expect_same("BOM", "edges.csv", bom + edges);
  expect_same("BOM, header, CRLF", "edges.csv", bom + "source,target\r\n" + graph.edge_text(",", "\r\n"));
  expect_same("no final newline", "edges.csv", edges.substr(0, edges.size() - 1));
  expect_same("tabs", "edges.tsv", graph.edge_text("\t"));
  expect_same("tabs, blanks at the end", "edges.tsv", graph.edge_text("\t", " \t\n"));
  expect_same("blanks", "edges.txt", graph.edge_text(" "));
  expect_same("runs of blanks around", "edges.txt", "  " + graph.edge_text("   ", "  \n  "));
  expect_same("lines of blanks between", "edges.txt", graph.edge_text(" ", "\n\t \t\n"));
  expect_same("semicolons", "edges.csv", graph.edge_text(";"));
  expect_same("blank after comma", "edges.csv", graph.edge_text(", "));
  expect_same("quotes", "edges.csv", "\"Source\",\"Target\"\n\"" + graph.edge_text("\",\"", "\"\n\"") + "0\",\"0\"\n");
  expect_same("comments and empty lines", "edges.csv", "# a graph\n\n#Nodes: 40\n" + graph.edge_text(",", "\n\n"));
  expect_same("unknown header", "edges.csv", "paper,cites\n" + edges);
  expect_same("networkx's edge list", "edges.txt", graph.edge_text(" ", " {}\n"));
  expect_same("features: CRLF, no final newline", "features.csv",
              graph.feature_text(",", "\r\n").substr(0, graph.feature_text(",", "\r\n").size() - 2));
  expect_same("features: header", "features.csv", "a,b,c\n" + graph.feature_text());
  expect_same("features: blanks", "features.txt", graph.feature_text("  "));
  expect_same("labels: header", "labels.csv", bom + "label\r\n" + graph.label_text(",", "\r\n"));
  expect_same("labels: floats", "labels.csv", graph.label_text(",", ".0\n"));
  std::string pairs, named, reversed, named_features = ",a,b,c\n";
  for (NodeId v = graph.n; v-- > 0;) pairs += fmt::format("{},{}\n", v, graph.labels[v]);
  expect_same("labels: pairs in another order", "labels.csv", pairs);
  expect_same("labels: pairs with header", "labels.csv", "node,class\n" + pairs);
  for (const auto& [u, v] : graph.edges) reversed += fmt::format("x,{},{}\n", v, u);
  expect_same("columns by name, one not read", "edges.csv", "kind,target,source\n" + reversed);
}

TEST(TextFormats, GzipAndGivenPathsReadTheSame) {
  const test::TemporaryFolder folder;
  const TextGraph graph(40, 100, true, 5);
  graph.write_plain(folder / "plain");
  graph.write_edges(folder / "g");
  fs::create_directories(folder / "other");
  fs::remove(folder / "g" / "edges.csv");
  test::write_gzip(folder / "g" / "edges.csv.gz", graph.edge_text(","));
  fs::rename(folder / "g" / "features.csv", folder / "other" / "f.csv");
  fs::rename(folder / "g" / "labels.csv", folder / "other" / "l.csv");
  fs::copy_file(folder / "plain" / "split.npy", folder / "other" / "s.npy");
  ImportOptions options;
  options.features = folder / "other" / "f.csv";
  options.labels = folder / "other" / "l.csv";
  options.split_file = folder / "other" / "s.npy";
  EXPECT_EQ(test::import(folder / "g" / "edges.csv.gz", folder / "s1", options).content_hash,
            hash_of(folder / "plain", folder / "s2"));
  options.features = folder / "plain" / "features.npy";
  options.labels = folder / "plain" / "labels.npy";
  EXPECT_EQ(test::import(folder / "g", folder / "s3", options).content_hash, hash_of(folder / "plain", folder / "s4"));
}

TEST(TextFormats, GzipOfSeveralMembersIsOneFile) {
  const test::TemporaryFolder folder;
  test::write_gzip(folder / "a.gz", "0,1\n1,");
  test::write_gzip(folder / "b.gz", "2\n");
  test::write_text(folder / "edges.csv.gz", read_text_file(folder / "a.gz") + read_text_file(folder / "b.gz"));
  EXPECT_EQ(test::import(folder / "edges.csv.gz", folder / "s").graph.num_edges(), 2u);
}

TEST(EdgesReader, MissingClassesAreNoneAmongNumbersAndNamesAmongNames) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "0,1\n1,2\n2,3\n3,4\n");
  test::write_text(folder / "g/labels.csv", "id,label\n0,1\n1,NA\n2,0\n3,None\n4,\n");
  const Dataset numbers = test::import(folder / "g", folder / "s");
  EXPECT_TRUE(numbers.class_names.empty());
  const std::vector<int> expected{1, -1, 0, -1, -1};
  for (NodeId v = 0; v < 5; ++v) EXPECT_EQ(numbers.labels.class_of(v), expected[v]) << v;
  test::write_text(folder / "g/labels.csv", "NA\n1\n0\n2\n1\n");  // no header
  const Dataset rows = test::import(folder / "g", folder / "s");
  EXPECT_EQ(rows.labels.class_of(0), -1);
  EXPECT_EQ(rows.labels.class_of(3), 2);
  test::write_text(folder / "g/labels.csv", "id,label\n0,DE\n1,NA\n2,US\n3,DE\n4,\n");
  EXPECT_EQ(test::import(folder / "g", folder / "s").class_names, (std::vector<std::string>{"DE", "NA", "US"}));
}

// Each row and column read again as text and compared: ids are names, in the order of the features.
TEST(EdgesReader, StringIdsAreKept) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "source,target,weight\nalice,bob,2\n\"bob, jr\",alice,0.5\ncarol,alice,1\n");
  test::write_text(folder / "g/features.csv", "name,x\ncarol,3\nbob,2\nalice,1\n\"bob, jr\",4\nzed,5\n");
  test::write_text(folder / "g/labels.csv", "id,label\nalice,red\nzed,blue\nbob,red\ncarol,\n");
  test::write_text(folder / "g/train.txt", "alice\n");
  test::write_text(folder / "g/val.txt", "bob\n");
  test::write_text(folder / "g/test.txt", "zed\n");
  const Dataset data = test::import(folder / "g", folder / "s");
  ASSERT_EQ(data.num_nodes(), 5u);
  const std::vector<std::string> names{"carol", "bob", "alice", "bob, jr", "zed"};
  for (NodeId v = 0; v < 5; ++v) EXPECT_EQ(data.ids.text(v), names[v]);
  EXPECT_EQ(data.features.dense_row(3)[0], 4);
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"blue", "red"}));
  EXPECT_EQ(data.labels.class_of(2), 1);
  EXPECT_EQ(data.labels.class_of(4), 0);
  EXPECT_EQ(data.labels.class_of(0), -1);
  EXPECT_EQ(data.labels.class_of(3), -1);
  EXPECT_EQ(data.graph.degree(2), 3u);
  EXPECT_EQ(data.graph.neighbour_weights(3)[0], 0.5f);
  EXPECT_EQ(data.role(2), Role::kTrain);
  EXPECT_EQ(data.role(4), Role::kTest);
  EXPECT_EQ(data.role(0), Role::kNone);
}

TEST(EdgesReader, IdsWithGapsAreCompactedInOrderAndKept) {
  const test::TemporaryFolder folder;
  // Below 2^27, above it, and as text: three ways inside, one result.
  for (const int64_t base : {int64_t{100}, int64_t{5'000'000'000}}) {
    test::write_text(folder / "edges.txt", fmt::format("{} {}\n{} {}\n", base + 70, base, base + 7, base + 70));
    const Dataset data = test::import(folder / "edges.txt", folder / fmt::format("s{}", base));
    ASSERT_EQ(data.num_nodes(), 3u);
    EXPECT_EQ(data.ids.kind(), NodeIds::Kind::kIntegers);
    EXPECT_EQ(data.ids.text(0), std::to_string(base));
    EXPECT_EQ(data.ids.text(2), std::to_string(base + 70));
    EXPECT_EQ(data.graph.degree(2), 2u);
  }
  test::write_text(folder / "edges.txt", "9 10\n10 007\n10 x\n");
  const Dataset data = test::import(folder / "edges.txt", folder / "texts");
  ASSERT_EQ(data.num_nodes(), 4u);
  EXPECT_EQ(data.ids.text(0), "9");
  EXPECT_EQ(data.ids.text(2), "007");
}

TEST(EdgesReader, WeightsThatAreAllOneAreNotKept) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "a.csv", "0,1,1\n1,2,1.0\n");
  test::write_text(folder / "b.csv", "0,1\n1,2\n");
  test::write_text(folder / "c.csv", "0,1,1\n1,2,2\n");
  EXPECT_EQ(hash_of(folder / "a.csv", folder / "a"), hash_of(folder / "b.csv", folder / "b"));
  EXPECT_TRUE(test::import(folder / "c.csv", folder / "c").graph.weighted());
}

TEST(EdgesReader, EdgesAloneWithoutGapsKeepTheirNumbers) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "edges.csv", "2,1\n0,1\n");
  const Dataset data = test::import(folder / "edges.csv", folder / "s");
  EXPECT_EQ(data.ids.kind(), NodeIds::Kind::kRange);
  EXPECT_EQ(data.num_nodes(), 3u);
  EXPECT_EQ(data.features.kind(), FeatureMatrix::Kind::kIdentity);
}

TEST(EdgesReader, LabelsMayNameNodesThatNoEdgeTouches) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "10,20\n");
  test::write_text(folder / "g/labels.csv", "15,1\n20,0\n");
  const Dataset data = test::import(folder / "g", folder / "s");
  ASSERT_EQ(data.num_nodes(), 3u);
  EXPECT_EQ(data.ids.text(1), "15");
  EXPECT_EQ(data.labels.class_of(1), 1);
  EXPECT_EQ(data.labels.class_of(0), -1);
  EXPECT_EQ(data.graph.degree(1), 0u);
}

// Many names against a map: the table grows several times, and hashes share slots.
TEST(NameTables, EqualAMap) {
  Random random(3, Purpose::kTest);
  TextTable texts;
  IntegerTable integers;
  std::map<std::string, NodeId> expected_texts;
  std::map<int64_t, NodeId> expected_integers;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = fmt::format("n{}", random.below(9000));
    EXPECT_EQ(texts.put(text), expected_texts.emplace(text, expected_texts.size()).first->second);
    const auto value = static_cast<int64_t>(random.below(9000)) * 1024 - 4'000'000;
    EXPECT_EQ(integers.put(value), expected_integers.emplace(value, expected_integers.size()).first->second);
  }
  for (const auto& [text, number] : expected_texts) EXPECT_EQ(texts.find(text), number);
  EXPECT_EQ(texts.find("m1"), kNoNode);
  EXPECT_EQ(integers.find(1), kNoNode);
  EXPECT_EQ(texts.size(), expected_texts.size());
}

}  // namespace
}  // namespace cgcn
