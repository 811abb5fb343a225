// First lines that may or may not be headers, and ids that only some of the files have: how they are read, and what is
// said about it.
#include <gmock/gmock.h>

#include "text_support.h"

namespace cgcn {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Reading {
  Dataset data;
  std::vector<std::string> lines;
  std::string warnings;
};

Reading read_folder(const fs::path& folder, const fs::path& store, HeaderLine header = HeaderLine::kAuto) {
  ImportOptions options;
  options.header = header;
  ImportReport report;
  ::testing::internal::CaptureStderr();
  Dataset data = test::import(folder, store, options, &report);
  return {std::move(data), report.lines, ::testing::internal::GetCapturedStderr()};
}

Reading read_edges(const std::string& text, HeaderLine header = HeaderLine::kAuto) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "edges.csv", text);
  return read_folder(folder / "edges.csv", folder / "s", header);
}

TEST(TextHeaders, TextOverNumbersIsAHeader) {
  for (const char* text : {"paper,cites\n1,2\n2,3\n", "user,item\nalice,1\nbob,1\n", "item,user\n1,alice\n1,bob\n"}) {
    const Reading reading = read_edges(text);
    EXPECT_EQ(reading.data.num_nodes(), 3u) << text;
    EXPECT_EQ(reading.data.graph.num_edges(), 2u) << text;
    EXPECT_THAT(reading.lines, Contains(HasSubstr("first line read as a header"))) << text;
  }
}

TEST(TextHeaders, NumbersFurtherDownAreNotEnough) {
  const Reading reading = read_edges("alice,bob\n1,2\ncarol,alice\nbob,1\n");
  EXPECT_EQ(reading.data.num_nodes(), 5u);
  EXPECT_EQ(reading.warnings, "");
}

TEST(TextHeaders, TextOverWeightsIsAHeader) {
  const Reading reading = read_edges("user,friend,weight\nann,bob,0.5\nbob,cid,2\n");
  EXPECT_EQ(reading.data.num_nodes(), 3u);
  EXPECT_TRUE(reading.data.graph.weighted());
  EXPECT_THAT(reading.lines, Contains(HasSubstr("first line read as a header: 'user,friend,weight'")));
}

TEST(TextHeaders, ALoneFirstLineOfTextsIsTheUsersToDecide) {
  const test::TemporaryFolder folder;
  const std::string text = "author,coauthor\nalice,bob\nbob,carol\n";
  test::write_text(folder / "g/edges.csv", text);
  EXPECT_THAT(
      test::import_error(folder / "g"),
      HasSubstr("edges.csv: the first line, 'author,coauthor', may name the columns or be an edge: its words occur "
                "nowhere else\nhint: --header yes if it names the columns, --header no if it is an edge"));
  EXPECT_EQ(read_edges(text, HeaderLine::kYes).data.num_nodes(), 3u);
  EXPECT_EQ(read_edges(text, HeaderLine::kNo).data.num_nodes(), 5u);
  EXPECT_EQ(read_edges("alice,bob\nbob,carol\n").data.num_nodes(), 3u);  // an id that occurs again is no column's name
  const Reading pairs = read_edges("alice,bob\ncarol,dan\nerin,frank\nerin,gus\n");  // one such edge among others
  EXPECT_EQ(pairs.data.num_nodes(), 7u);
  EXPECT_THAT(pairs.lines, Contains("first line read as an edge: 'alice,bob' (--header yes: as a header)"));
}

TEST(TextHeaders, AColumnOfTheTablesMakesAHeader) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "user,friend\nann,bob\nbob,cid\n");
  test::write_text(folder / "g/features.csv", "User,age\ncid,7\nann,5\nbob,6\n");
  test::write_text(folder / "g/labels.csv", "user,team\nbob,red\nann,blue\ncid,red\n");
  const Reading reading = read_folder(folder / "g", folder / "s");
  EXPECT_THAT(reading.lines, Contains("first line read as a header: 'user,friend': 'user' is a column of features.csv "
                                      "(--header no: as an edge)"));
  EXPECT_THAT(reading.lines, Contains("edges.csv: edges from column 'user' to 'friend'"));
  EXPECT_THAT(reading.lines, Contains("features.csv: column 'User' names the nodes; 1 column: 'age'"));
  EXPECT_THAT(reading.lines, Contains("labels.csv: column 'user' names the nodes; column 'team' is the class"));
  EXPECT_EQ(reading.data.num_nodes(), 3u);
  EXPECT_EQ(reading.data.labels.class_of(0), 1);  // cid is red, and the first row of the features
}

TEST(TextHeaders, TheHintKeepsTheHeadersOfTheTables) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "user,friend\nann,bob\nbob,cid\n");
  test::write_text(folder / "g/features.csv", "member,age\ncid,7\nann,5\nbob,6\n");
  EXPECT_THAT(test::import_error(folder / "g"),
              HasSubstr("--header yes if it names the columns, --header no --features-header yes if it is an edge"));
}

TEST(TextHeaders, IdsOfATableAreNoHeader) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "ann,bob\ncid,dan\ncid,eve\ndan,eve\n");
  test::write_text(folder / "g/features.csv", "member,age\nann,5\nbob,6\ncid,7\ndan,8\neve,9\n");
  const Reading reading = read_folder(folder / "g", folder / "s");
  EXPECT_EQ(reading.data.num_nodes(), 5u);
  EXPECT_EQ(reading.data.graph.num_edges(), 4u);
}

TEST(TextHeaders, ForcedEitherWay) {
  EXPECT_EQ(read_edges("source,target\na,b\n", HeaderLine::kNo).data.num_nodes(), 4u);
  EXPECT_EQ(read_edges("1,2\n3,4\n", HeaderLine::kYes).data.num_nodes(), 2u);
}

TEST(TextHeaders, OnlyAColumnCalledWeightIsOneUnderAHeader) {
  const Reading time = read_edges("paper,cites,year\n1,2,1999\n2,3,2001\n");
  EXPECT_FALSE(time.data.graph.weighted());
  EXPECT_THAT(time.lines, Contains(HasSubstr("not read: year")));
  EXPECT_TRUE(read_edges("paper,cites,weight\n1,2,1999\n2,3,2001\n").data.graph.weighted());
}

TEST(TextHeaders, LabelsUnderUnknownNames) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "10,20\n20,30\n");
  test::write_text(folder / "g/labels.csv", "paper,subject\n10,3\n20,1\n30,0\n");
  EXPECT_EQ(read_folder(folder / "g", folder / "s").data.labels.class_of(0), 3);
  test::write_text(folder / "g/edges.csv", "a,b\nb,c\n");
  test::write_text(folder / "g/labels.csv", "paper,subject\na,red\nb,blue\nc,red\n");
  EXPECT_EQ(read_folder(folder / "g", folder / "s").data.num_nodes(), 3u);  // the edges have no node 'paper'
  // Nor one 'z': which of the two is no node cannot be told.
  test::write_text(folder / "g/labels.csv", "paper,subject\na,red\nb,blue\nc,red\nz,red\n");
  const Reading reading = read_folder(folder / "g", folder / "s");
  EXPECT_THAT(reading.warnings, HasSubstr("label of node 'paper', which has no edge"));
  EXPECT_THAT(reading.warnings, HasSubstr("call them id and label"));
}

TEST(TextIds, WhatOnlyOneFileHasIsCounted) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "1,2\n2,3\n3,4\n");
  test::write_text(folder / "g/labels.csv", "id,label\n1,0\n7,1\n8,1\n2,0\n");
  const Reading reading = read_folder(folder / "g", folder / "s");
  EXPECT_EQ(reading.data.num_nodes(), 6u);
  EXPECT_THAT(reading.lines, Contains("2 nodes have no edge: 7, 8; 2 nodes are not in labels.csv: 3, 4"));
  test::write_text(folder / "g/train.txt", "1\n3\n");
  EXPECT_THAT(read_folder(folder / "g", folder / "s").lines, Contains("1 node of the split has no label"));
  test::write_text(folder / "g/train.txt", "1\n9\n");
  EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("train.txt:2: node '9' is not in"));
}

TEST(TextIds, FilesThatShareNoIdAreRefused) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "from,to\n1,2\n2,3\n");
  test::write_text(folder / "g/labels.csv", "id,label\nn1,0\nn2,1\n");
  EXPECT_THAT(test::import_error(folder / "g"),
              HasSubstr("labels.csv: none of its 2 ids is among the edges, such as 'n1'\n"
                        "hint: the ids of edges.csv, such as '1'"));
}

TEST(TextIds, NodesOfTheFeaturesWithoutAnEdgeAreCounted) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "g/edges.csv", "0,1\n");
  test::write_text(folder / "g/features.csv", "1\n2\n3\n");
  EXPECT_THAT(read_folder(folder / "g", folder / "s").lines, Contains("1 node has no edge: 2"));
}

}  // namespace
}  // namespace cgcn
