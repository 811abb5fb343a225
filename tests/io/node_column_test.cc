// Which column of features, labels and split names the nodes: found, said, or refused.
#include <gmock/gmock.h>

#include "text_support.h"

namespace cgcn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Eight customers in a ring; their features are ten times their id, their class is the id's last bit.
const std::vector<int> kCustomers = {1004, 1001, 1007, 1002, 1006, 1003, 1000, 1005};

struct Ring {
  test::TemporaryFolder folder;
  ImportOptions options;
  ImportReport report;

  explicit Ring(const std::string& edge_header = "source,target\n") {
    std::string edges = edge_header;
    for (int i = 0; i < 8; ++i) edges += fmt::format("{},{}\n", 1000 + i, 1000 + (i + 1) % 8);
    test::write_text(folder / "g/edges.csv", edges);
  }
  void write(const std::string& file, const std::string& header, const std::function<std::string(int, int)>& row) {
    std::string text = header;
    for (int i = 0; i < 8; ++i) text += row(i, kCustomers[static_cast<size_t>(i)]) + "\n";
    test::write_text(folder / "g" / file, text);
  }
  void features(const std::string& header, const std::function<std::string(int, int)>& row) {
    write("features.csv", header, row);
  }
  Dataset import() {
    report = {};
    return test::import(folder / "g", folder / "s", options, &report);
  }
  std::string error() { return test::import_error(folder / "g", options); }

  // Each node's feature in `column` is ten times its id.
  void expect_matched(const std::string& said, uint32_t column = 0) {
    const Dataset data = import();
    ASSERT_EQ(data.num_nodes(), 8u) << said;
    for (NodeId v = 0; v < 8; ++v)
      EXPECT_EQ(data.features.dense_row(v)[column], 10 * std::stof(data.ids.text(v))) << said;
    EXPECT_THAT(report.lines, Contains(HasSubstr(said)));
  }
};

std::string id_first(int, int id) { return fmt::format("{},{}", id, 10 * id); }

TEST(NodeColumn, IsFoundByItsName) {
  for (const char* name : {"user_id", "uid", "userId", "ACCOUNT_ID", "node", "name", "Node_ID"}) {
    Ring ring;
    ring.features(fmt::format("{},x\n", name), id_first);
    ring.expect_matched(fmt::format("features.csv: column '{}' names the nodes", name));
    ring.features(fmt::format("x,{}\n", name), [](int, int id) { return fmt::format("{},{}", 10 * id, id); });
    ring.expect_matched(fmt::format("column '{}' names the nodes", name));
  }
}

TEST(NodeColumn, IsFoundByTheNamesInTheEdgeList) {
  Ring ring("customer,other\n");
  ring.features("segment,x,customer\n", [](int i, int id) { return fmt::format("{},{},{}", i, 10 * id, id); });
  ring.expect_matched("column 'customer' names the nodes", 1);
}

TEST(NodeColumn, IsFoundByItsValues) {
  Ring ring;
  ring.features("x,holder,y\n", [](int i, int id) { return fmt::format("{},{},{}.5", 10 * id, id, i); });
  ring.expect_matched("column 'holder' names the nodes");
  ring.features("", [](int i, int id) { return fmt::format("{},{},{}.5", id, 10 * id, i); });  // no header
  ring.expect_matched("column 1 names the nodes");
}

// An id column of an isolated node more, or of a node less in the labels, is one all the same.
TEST(NodeColumn, MayHaveMoreOrFewerIdsThanTheEdges) {
  Ring ring;
  ring.features("holder,x\n", id_first);
  std::string text = read_text_file(ring.folder / "g/features.csv") + "2000,20000\n";
  test::write_text(ring.folder / "g/features.csv", text);
  test::write_text(ring.folder / "g/labels.csv", "holder,y\n1003,1\n1000,0\n");
  const Dataset data = ring.import();
  ASSERT_EQ(data.num_nodes(), 9u);
  EXPECT_EQ(data.labels.class_of(5), 1);
  EXPECT_EQ(data.labels.class_of(6), 0);
  EXPECT_EQ(data.labels.class_of(8), -1);
  EXPECT_THAT(ring.report.lines,
              Contains("1 node has no edge: 2000; 7 nodes are not in labels.csv: 1004, 1001, 1007, 1002, 1006 …"));
}

TEST(NodeColumn, PandasIndexIsTheIdUnlessAnotherColumnIs) {
  Ring ring;
  ring.features(",x\n", id_first);
  ring.expect_matched("names the nodes");
  ring.features(",0,1\n", [](int i, int id) { return fmt::format("{},{},{}", id, 10 * id, 0.5 + i); });
  ring.expect_matched("names the nodes");
  EXPECT_THAT(ring.import().feature_names, ElementsAre("0", "1"));
  ring.features(",user_id,x\n", [](int i, int id) { return fmt::format("{},{},{}", i, id, 10 * id); });
  ring.expect_matched("column 'user_id' names the nodes");
  EXPECT_THAT(ring.import().feature_names, ElementsAre("x"));
  test::write_text(ring.folder / "g/labels.csv", ",0\n1000,1\n1003,0\n");
  EXPECT_EQ(ring.import().labels.class_of(6), 1);
}

TEST(NodeColumn, PandasIndexBesideEdgesIsLeftOut) {
  for (const char* header : {",0,1\n", ",a,b\n", ",source,target\n"}) {
    const test::TemporaryFolder folder;
    test::write_text(folder / "edges.csv", std::string(header) + "0,7,8\n1,8,9\n");
    EXPECT_EQ(test::import(folder / "edges.csv", folder / "s").num_nodes(), 3u) << header;
  }
}

TEST(NodeColumn, RowNumbersAreSaid) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "0,1\n1,2\n");
  test::write_text(folder / "g/features.csv", "x,country_id\n0.5,7\n0.25,7\n1,9\n");
  test::write_text(folder / "g/labels.csv", "0\n1\n0\n");
  ImportReport report;
  EXPECT_THAT(test::import(folder / "g", folder / "s", {}, &report).feature_names, ElementsAre("x", "country_id"));
  EXPECT_THAT(report.lines, Contains("features.csv: row i is node i; 2 columns: 'x', 'country_id'"));
  EXPECT_THAT(report.lines, Contains("labels.csv: row i is node i"));
}

TEST(NodeColumn, WhatIsAmbiguousIsRefused) {
  Ring ring;
  ring.features("user_id,account_id,x\n", [](int i, int id) {
    return fmt::format("{},{},{}", id, kCustomers[static_cast<size_t>(7 - i)], 10 * id);
  });
  EXPECT_THAT(ring.error(), HasSubstr("columns 'user_id', 'account_id' all look like node ids of edges.csv"));
  EXPECT_THAT(ring.error(), HasSubstr("--id-column user_id"));
  ring.options.id_column = "user_id";
  ring.expect_matched("column 'user_id' names the nodes (--id-column)", 1);

  Ring other;  // ids of something else: neither a feature nor the nodes' ids, unless the user says so
  other.features("user_id,x\n", [](int i, int id) { return fmt::format("{},{}", 5 + i, 10 * id); });
  EXPECT_THAT(other.error(), HasSubstr("column 'user_id' looks like node ids, but none of its 8 values are ids in"));
  Ring twice;
  twice.features("user_id,x\n", [](int i, int id) { return fmt::format("{},{}", i == 7 ? 1004 : id, 10 * id); });
  EXPECT_THAT(twice.error(), HasSubstr("column 'user_id' looks like node ids, but '1004' occurs more than once"));
}

// Rows are never joined by their number because one of them has no id, or has another one's.
TEST(NodeColumn, AFewRowsWithoutAnIdOfTheirOwnAreRefused) {
  for (const char* name : {"customer_id", "Kunde"})
    for (const bool missing : {true, false}) {
      const test::TemporaryFolder folder;
      test::write_text(folder / "g/edges.csv", "from,to\n3,1\n1,2\n2,0\n");
      test::write_text(folder / "g/features.csv",
                       fmt::format("{},v\n3,30\n{},99\n1,10\n2,20\n0,0\n", name, missing ? "" : "3"));
      test::write_text(folder / "g/labels.csv",
                       fmt::format("{},v,label\n3,30,1\n{},99,1\n1,10,0\n2,20,1\n0,0,0\n", name, missing ? "NA" : "3"));
      ImportOptions options;
      options.missing = MissingValues::kZero;
      const std::string expected = fmt::format("column '{}' looks like node ids, but {}", name,
                                               missing ? "line 3 has none" : "'3' occurs more than once");
      options.labels = "none";
      EXPECT_THAT(test::import_error(folder / "g", options), HasSubstr(expected));
      options = {};
      options.features = "none";
      options.label_column = "label";
      EXPECT_THAT(test::import_error(folder / "g", options), HasSubstr(expected));
    }
}

TEST(NodeColumn, AColumnWithManyTiesIsNoColumnOfIds) {
  const test::TemporaryFolder folder;
  std::string edges = "source,target\n", features = "rank,x\n";
  for (int i = 0; i < 40; ++i) edges += fmt::format("{},{}\n", i, (i + 1) % 40);
  for (int i = 0; i < 40; ++i) features += fmt::format("{},{}\n", i < 30 ? i : i - 10, 0.5 * i);
  test::write_text(folder / "g/edges.csv", edges);
  test::write_text(folder / "g/features.csv", features);
  EXPECT_THAT(test::import(folder / "g", folder / "s", {}).feature_names, ElementsAre("rank", "x"));
}

TEST(NodeColumn, IdsWithoutARowAreCounted) {
  const test::TemporaryFolder folder;
  std::string edges = "source,target\n", features = "member,x\n";
  for (int i = 0; i < 40; ++i) edges += fmt::format("p{},p{}\n", i, (i + 1) % 40);
  for (int i = 0; i < 38; ++i) features += fmt::format("p{},{}.5\n", i, i);
  test::write_text(folder / "g/edges.csv", edges);
  test::write_text(folder / "g/features.csv", features);
  EXPECT_THAT(test::import_error(folder / "g"),
              HasSubstr("column 'member' looks like node ids, but 2 of the 40 ids in edges.csv are not in it"));
}

TEST(NodeColumn, AFileThatNobodyNamedIsSaidToHaveBeenFound) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "source,target\n10,20\n20,30\n");
  test::write_text(folder / "g/features.csv", "0.5\n1.5\n2.5\n");
  EXPECT_THAT(test::import_error(folder / "g/edges.csv"),
              HasSubstr("features.csv was found next to edges.csv: --features none ignores it"));
}

TEST(NodeColumn, IsWhatTheUserSays) {
  Ring ring;
  ring.features("user_id,x,other\n", [](int i, int id) { return fmt::format("{},{},{}", 5 + i, 10 * id, id); });
  ring.options.id_column = "other";
  ring.expect_matched("column 'other' names the nodes", 1);
  ring.options.id_column = "nothing";
  EXPECT_THAT(ring.error(), HasSubstr("no table has a column 'nothing'"));

  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "0,1\n1,2\n");
  test::write_text(folder / "g/features.csv", "id,x\n2,5\n1,6\n0,7\n");
  ImportOptions none;
  none.id_column = "none";
  const Dataset rows = test::import(folder / "g", folder / "s", none);
  EXPECT_EQ(rows.features.columns(), 2u);
  EXPECT_EQ(rows.features.dense_row(0)[0], 2);
  EXPECT_EQ(test::import(folder / "g", folder / "s").features.dense_row(0)[0], 5);
}

TEST(NodeColumn, HoldsForLabelsAndSplitToo) {
  Ring ring;
  ring.write("labels.csv", "uid,label,updated\n",
             [](int, int id) { return fmt::format("{},{},2021-03-04", id, id % 2 == 0 ? "even" : "odd"); });
  ring.write("split.csv", "part,uid\n", [](int, int id) {
    return fmt::format("{},{}", id < 1004 ? "train" : id < 1006 ? "Validation" : id < 1007 ? "test" : "", id);
  });
  const Dataset data = ring.import();
  for (NodeId v = 0; v < 8; ++v) {
    EXPECT_EQ(data.class_names[static_cast<size_t>(data.labels.class_of(v))], v % 2 == 0 ? "even" : "odd");
    EXPECT_EQ(data.role(v), v < 4 ? Role::kTrain : v < 6 ? Role::kValidation : v < 7 ? Role::kTest : Role::kNone) << v;
  }
  EXPECT_THAT(ring.report.lines,
              Contains("labels.csv: column 'uid' names the nodes; column 'label' is the class; left out: 'updated'"));
  EXPECT_THAT(ring.report.lines, Contains("split.csv: column 'uid' names the nodes; column 'part' is the split"));
}

TEST(NodeColumn, HeadersOfFeaturesAndLabelsMayBeForced) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "a,b\nb,c\n");
  test::write_text(folder / "g/labels.csv", "who,what\na,red\nb,blue\nc,red\n");
  ImportOptions options;
  options.labels_header = HeaderLine::kYes;
  EXPECT_EQ(test::import(folder / "g", folder / "s", options).class_names, (std::vector<std::string>{"blue", "red"}));
  fs::remove(folder / "g/labels.csv");
  test::write_text(folder / "g/edges.csv", "0,1\n1,2\n");
  test::write_text(folder / "g/features.csv", "2019,2020\n1.5,2\n3,4\n5,6.5\n");
  options = {};
  options.features_header = HeaderLine::kYes;
  EXPECT_THAT(test::import(folder / "g", folder / "s", options).feature_names, ElementsAre("2019", "2020"));
  options.features_header = HeaderLine::kNo;
  EXPECT_EQ(test::import(folder / "g", folder / "s", options).num_nodes(), 4u);
  options = {};
  options.header = HeaderLine::kYes;  // for all files
  EXPECT_EQ(test::import(folder / "g", folder / "s", options).num_nodes(), 3u);
}

}  // namespace
}  // namespace cgcn
