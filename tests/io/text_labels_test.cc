// Labels and numbers in text that are easily taken for something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/io_support.h"

namespace cgcn {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

struct FourNodes {
  test::TemporaryFolder folder;
  ImportOptions options;
  ImportReport report;
  FourNodes() { test::write_text(folder / "g/edges.csv", "source,target\n3,1\n1,2\n2,0\n"); }
  Dataset import() { return test::import(folder / "g", folder / "s", options, &report); }
  std::string error() { return test::import_error(folder / "g", options); }
};

TEST(TextLabels, CodesWithLeadingZerosAreNames) {
  FourNodes graph;
  test::write_text(graph.folder / "g/labels.csv", "id,label\n0,01\n1,1\n2,02\n3,NA\n");
  const Dataset data = graph.import();
  EXPECT_THAT(data.class_names, ElementsAre("01", "02", "1"));
  EXPECT_FALSE(data.labels.known(3));
}

TEST(TextLabels, ListsOfClassesAreMultiLabel) {
  FourNodes graph;
  test::write_text(graph.folder / "g/labels.csv", "id,label\n0,x;y\n1,y\n2,x | z\n3,\n");
  EXPECT_THAT(graph.import().class_names, ElementsAre("x | z", "x;y", "y"));
  test::write_text(graph.folder / "g/labels.csv", "id,label\n0,y;x\n1,y\n2,x | y\n3,\n");
  const Dataset single = graph.import();
  EXPECT_THAT(graph.report.lines,
              Contains("label 'y;x' is read as the name of a class (--multi-label reads a list of classes)"));
  graph.options.multi_label = true;
  const Dataset data = graph.import();
  ASSERT_TRUE(data.labels.multi_label());
  EXPECT_THAT(data.class_names, ElementsAre("x", "y"));
  EXPECT_TRUE(data.labels.has(0, 0) && data.labels.has(0, 1));
  EXPECT_TRUE(!data.labels.has(1, 0) && data.labels.has(1, 1));
  EXPECT_TRUE(data.labels.has(2, 0) && data.labels.has(2, 1));
  EXPECT_THAT(graph.report.lines, Contains("3 of 4 nodes have a label"));
}

TEST(TextLabels, AHeaderThatLooksLikeAClassIsAskedFor) {
  FourNodes graph;
  test::write_text(graph.folder / "g/labels.csv", "0\n1\n1\n0\n2\n");
  EXPECT_THAT(graph.error(), HasSubstr("its first line, '0', may name the column"));
  graph.options.labels_header = HeaderLine::kYes;
  EXPECT_EQ(graph.import().labels.class_of(3), 2);
  graph.options.labels_header = HeaderLine::kNo;
  EXPECT_EQ(graph.import().num_nodes(), 5u);
  test::write_text(graph.folder / "g/features.csv", "0.5\n1.5\n2.5\n3.5\n");
  graph.options.labels_header = HeaderLine::kAuto;
  EXPECT_THAT(graph.error(), HasSubstr("--labels-header yes, if the first line names the columns"));
}

TEST(TextLabels, BetweenTabsAFieldMayBeEmpty) {
  FourNodes graph;
  test::write_text(graph.folder / "g/labels.tsv", "id\tlabel\n0\tx\n1\t\n2\ty\n3\tx\n");
  test::write_text(graph.folder / "g/features.tsv", "\tv\tw\n0\t1\t\n1\t2\t\n2\t3\t4\n3\t4\t\t\n");
  graph.options.missing = MissingValues::kZero;
  const Dataset data = graph.import();
  EXPECT_FALSE(data.labels.known(1));
  EXPECT_THAT(data.feature_names, ElementsAre("v", "w"));
  EXPECT_THAT(graph.report.lines, Contains(HasSubstr("the first column, which has no name, names the nodes")));
}

TEST(TextLabels, WholeNumbersThatAreRoundedAreNamed) {
  FourNodes graph;
  test::write_text(graph.folder / "g/features.csv", "id,day,x\n0,20240101,0.1\n1,20240102,0.2\n2,20240103,1\n3,4,5\n");
  graph.import();
  EXPECT_THAT(graph.report.lines, Contains(HasSubstr("column 'day': float32 has no 20240101")));
  EXPECT_THAT(graph.report.lines, testing::Not(Contains(HasSubstr("column 'x'"))));
}

}  // namespace
}  // namespace cgcn
