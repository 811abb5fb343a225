// What was read is said: every file, every column, and ids that only some of the files have.
#include <gmock/gmock.h>

#include "text_support.h"

namespace cgcn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Import {
  test::TemporaryFolder folder;
  ImportOptions options;
  ImportReport report;
  Dataset read(const fs::path& source) {
    report = {};
    return test::import(source, folder / "s", options, &report);
  }
};

TEST(ImportReport, FilesFoundBesideTheEdgesAreSaidAndCanBeDeclined) {
  Import import;
  const fs::path edges = import.folder / "g/edges.csv";
  test::write_text(edges, "src,dst,weight,time\n0,1,2,9\n1,2,1,9\n");
  test::write_text(import.folder / "g/labels.csv", "id,label\n0,1\n1,0\n2,1\n");
  test::write_text(import.folder / "g/split.csv", "id,split\n0,train\n1,val\n2,test\n");
  EXPECT_TRUE(import.read(edges).labels.present());
  EXPECT_THAT(import.report.lines,
              Contains("edges.csv: edges from column 'src' to 'dst', weights from 'weight'; not read: time"));
  EXPECT_THAT(import.report.lines,
              Contains("labels.csv (found next to edges.csv; --labels none ignores it): column 'id' names the nodes; "
                       "column 'label' is the class"));
  EXPECT_THAT(import.report.lines,
              Contains("split.csv (found next to edges.csv; --split-file none ignores it): column 'id' names the "
                       "nodes; column 'split' is the split"));
  import.options.labels = "none";
  import.options.split_file = "none";
  const Dataset data = import.read(edges);
  EXPECT_FALSE(data.labels.present());
  EXPECT_TRUE(data.split.empty());
  EXPECT_THAT(import.report.lines, Not(Contains(HasSubstr("labels.csv"))));
  import.options = {};
  import.read(import.folder / "g");  // the folder was named, and with it what is in it
  EXPECT_THAT(import.report.lines, Contains(HasSubstr("labels.csv: column 'id'")));
}

TEST(ImportReport, UnknownIdsAreCountedAndListedInOneMessage) {
  Import import;
  std::string edges = "source,target\n", labels = "id,label\n";
  for (int i = 0; i < 9; ++i) edges += fmt::format("n{},n{}\n", i, i + 1);
  for (int i = 0; i < 10; ++i) labels += fmt::format("n{},{}\n", i, i % 2);
  test::write_text(import.folder / "g/edges.csv", edges);
  test::write_text(import.folder / "g/labels.csv", labels);
  test::write_text(import.folder / "g/features.csv", "id,x\nn0,1\nn1,2\n");
  EXPECT_THAT(
      test::import_error(import.folder / "g"),
      HasSubstr("labels.csv:4: 8 node ids of labels.csv, 'n2', 'n3', 'n4', 'n5', 'n6' …, are not in features.csv"));
  fs::remove(import.folder / "g/labels.csv");
  EXPECT_THAT(
      test::import_error(import.folder / "g"),
      HasSubstr("edges.csv:3: 8 node ids of edges.csv, 'n2', 'n3', 'n4', 'n5', 'n6' …, are not in features.csv"));
  fs::remove(import.folder / "g/features.csv");
  test::write_text(import.folder / "g/split.csv", "id,split\nn0,train\nzz,val\nyy,val\n");
  EXPECT_THAT(test::import_error(import.folder / "g"),
              HasSubstr("split.csv:3: 2 node ids of split.csv, 'zz', 'yy', are"));
}

TEST(ImportReport, BlankLabelsDoNotCountAsLabelled) {
  Import import;
  test::write_text(import.folder / "g/edges.csv", "0,1\n1,2\n2,3\n3,4\n");
  test::write_text(import.folder / "g/labels.csv", "id,label\n0,a\n1,\n2,b\n3,NaN\n4,\n");
  import.options.split = "50/25/25";
  EXPECT_EQ(import.read(import.folder / "g").split_sizes(), (std::array<uint64_t, 3>{1, 1, 0}));
  EXPECT_THAT(import.report.lines, Contains("2 of 5 nodes have a label"));
  // Several classes per node: those that the table does not list have no label, rather than no class.
  test::write_text(import.folder / "g/labels.csv", "id,red,blue\n0,1,0\n1,1,1\n2,0,0\n");
  import.options.split = "100/0/0";
  EXPECT_EQ(import.read(import.folder / "g").split_sizes()[0], 3u);
  import.options.split = "";
  test::write_text(import.folder / "g/split.csv", "id,split\n0,train\n4,train\n");
  const Dataset data = import.read(import.folder / "g");
  EXPECT_EQ(data.role(0), Role::kTrain);
  EXPECT_EQ(data.role(4), Role::kNone);
  EXPECT_THAT(import.report.lines, Contains("1 node of the split has no label, and no role therefore"));
}

TEST(ImportReport, TheClassColumnIsNamedOrAskedFor) {
  Import import;
  test::write_text(import.folder / "g/edges.csv", "0,1\n1,2\n");
  test::write_text(import.folder / "g/labels.csv",
                   "id,label,updated\n0,3,2021-01-01\n1,2,2021-01-02\n2,0,2021-01-03\n");
  EXPECT_EQ(import.read(import.folder / "g").labels.class_of(0), 3);
  test::write_text(import.folder / "g/labels.csv", "id,risk,group\n0,3,7\n1,2,8\n2,0,9\n");
  EXPECT_THAT(test::import_error(import.folder / "g"),
              HasSubstr("labels.csv: which column is the class? There are 'risk', 'group'\nhint: --label-column NAME"));
  import.options.label_column = "risk";
  EXPECT_EQ(import.read(import.folder / "g").labels.class_of(1), 2);
  EXPECT_THAT(import.report.lines, Contains(HasSubstr("column 'risk' is the class; left out: 'group'")));
  import.options.label_column = "what";
  EXPECT_THAT(test::import_error(import.folder / "g", import.options),
              HasSubstr("--label-column: labels.csv has no column 'what'\nhint: one of 'id', 'risk', 'group'"));
}

TEST(ImportReport, SplitFilesAreTextOrArraysById) {
  Import import;
  test::write_text(import.folder / "g/edges.csv", "7,8\n8,9\n");
  const auto roles = [&](const std::string& file, const std::string& text) {
    test::write_text(import.folder / file, text);
    import.options.split_file = import.folder / file;
    const Dataset data = import.read(import.folder / "g/edges.csv");
    return std::vector<int>(data.split.begin(), data.split.end());
  };
  EXPECT_THAT(roles("a.csv", "node,set\n9,train\n7,dev\n8,TEST\n"), ElementsAre(1, 2, 0));
  EXPECT_THAT(roles("a.txt", "9 train\n7 test\n"), ElementsAre(2, 255, 0));
  EXPECT_THAT(roles("b.tsv", "split\tuser_id\tseen\n0\t7\t5\n1\t9\t5\n"), ElementsAre(0, 255, 1));
  EXPECT_THAT(roles("c.txt", "train\nval\n\"\"\n"), ElementsAre(0, 1, 255));
  test::write_npy<uint8_t>(import.folder / "d.npy", {2, 1, 0}, {3});
  import.options.split_file = import.folder / "d.npy";
  EXPECT_EQ(import.read(import.folder / "g/edges.csv").role(0), Role::kTest);
  test::write_text(import.folder / "e.csv", "id,split\n7,train\n8,nowhere\n");
  import.options.split_file = import.folder / "e.csv";
  EXPECT_THAT(test::import_error(import.folder / "g/edges.csv", import.options),
              HasSubstr("e.csv:3: 'nowhere' is no part of a split"));
  test::write_text(import.folder / "f.txt", "train\nval\n");
  import.options.split_file = import.folder / "f.txt";
  EXPECT_THAT(test::import_error(import.folder / "g/edges.csv", import.options),
              HasSubstr("f.txt: holds roles of 2 nodes, but the graph has 3"));
}

TEST(ImportReport, ArraysTakeASplitOfText) {
  Import import;
  test::TextGraph(5, 4, false, 1).write_plain(import.folder / "g");
  test::write_text(import.folder / "split.csv", "id,split\n4,train\n0,test\n");
  import.options.split_file = import.folder / "split.csv";
  const Dataset data = import.read(import.folder / "g");
  EXPECT_EQ(data.role(4), Role::kTrain);
  EXPECT_EQ(data.role(0), Role::kTest);
  EXPECT_EQ(data.role(1), Role::kNone);
}

}  // namespace
}  // namespace cgcn
