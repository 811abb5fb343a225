// Files that could be taken for something else: numbers as other countries write them, labels that mean none or are no
// classes, answers among the features, comments among the rows, arrays next to nodes that have names.
#include <gmock/gmock.h>

#include "text_support.h"

namespace cgcn {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A path of the nodes a, b, c, d.
struct Doubtful {
  test::TemporaryFolder folder;
  ImportOptions options;
  ImportReport report;

  Doubtful() { write("edges.csv", "source,target\na,b\nb,c\nc,d\n"); }
  void write(const std::string& file, const std::string& text) { test::write_text(folder / "g" / file, text); }
  Dataset import() {
    report = {};
    return test::import(folder / "g", folder / "s", options, &report);
  }
  std::vector<int> roles() {
    const Dataset data = import();
    return {data.split.begin(), data.split.end()};
  }
  std::string error() { return test::import_error(folder / "g", options); }
};

TEST(DoubtfulFiles, NumbersInOtherNotationsAreNoCategories) {
  for (const char* number : {"0,5", "\"1,234\"", "\"1,234,567.8\"", "12%", "$3", "3 €", "\"$1,234\"", "1 234"}) {
    Doubtful files;
    files.write("features.csv", fmt::format("id;age;income\na;1;{0}\nb;2;{0}\nc;3;{0}\nd;4;0.5\n", number));
    files.write("split.csv", "id,split\na,train\nb,train\nc,val\nd,test\n");
    for (const Categorical how : {Categorical::kRefuse, Categorical::kOneHot}) {
      files.options.categorical = how;
      EXPECT_THAT(files.error(), AllOf(HasSubstr("features.csv:2: numbers that cannot be read in column 'income'"),
                                       HasSubstr("write numbers as 1234.5"), Not(HasSubstr("one-hot"))))
          << number;
    }
  }
  for (const char* text : {"18-25", "1,2,3", "v1.2", "3rd", "A4", "114 55"}) {
    Doubtful files;
    files.write("features.csv", fmt::format("id;kind\na;{0}\nb;{0}\nc;{0}\nd;{0}\n", text));
    files.write("split.csv", "id,split\na,train\nb,train\nc,val\nd,test\n");
    files.options.categorical = Categorical::kOneHot;
    EXPECT_THAT(files.import().feature_names, ElementsAre(fmt::format("kind={}", text)));
  }
}

// A column called user_id that is not read as one must not pass for a feature.
TEST(DoubtfulFiles, IdsOfAnotherNotationAreIds) {
  for (const auto& [first, second] : {std::pair("00007", "00008"), std::pair("7.0", "8.0"),
                                      std::pair("100000000000000000007", "100000000000000000008")}) {
    Doubtful files;
    const std::string edges = fmt::format("source,target\n{},{}\n", first, second);
    files.write("edges.csv", edges);
    for (const char* name : {"user_id", "customer"}) {
      files.write("features.csv", fmt::format("x,{2}\n1.5,{1}\n2.5,{0}\n", first, second, name));
      const Dataset data = files.import();
      EXPECT_EQ(data.ids.text(0), second);
      EXPECT_EQ(data.features.dense_row(0)[0], 1.5f);
      EXPECT_EQ(data.features.columns(), 1u);
    }
    files.write("edges.csv", "source,target\n0,1\n");  // written by a program that read the ids as numbers
    files.write("features.csv", fmt::format("x,user_id\n1.5,{}\n2.5,{}\n", second, first));
    EXPECT_THAT(files.error(), HasSubstr("column 'user_id' looks like node ids, but none of its 2 values are ids"));
  }
}

TEST(DoubtfulFiles, LabelsThatAreNumbersAreNoClasses) {
  Doubtful files;
  files.write("labels.csv", "id,price\na,1.25\nb,3\nc,NA\nd,0.5\n");
  EXPECT_THAT(files.error(), AllOf(HasSubstr("labels.csv: labels are numbers, and not all of them are whole"),
                                   HasSubstr("--task regression")));
  files.options.task = Task::kRegression;
  EXPECT_TRUE(files.import().labels.regression());
  files.options = {};
  files.write("labels.csv", "id,kind\na,1.25\nb,3\nc,other\nd,0.5\n");  // one name makes all of them names
  EXPECT_THAT(files.import().class_names, ElementsAre("0.5", "1.25", "3", "other"));
}

TEST(DoubtfulFiles, MinusOneAndOneAreNotOneClass) {
  Doubtful files;
  files.write("labels.csv", "id,label\na,-1\nb,1\nc,+1\nd,-1\n");
  const auto refused = AllOf(HasSubstr("the only class is 1: the labels below 0, of 2 nodes, mean no class"),
                             HasSubstr("number the classes from 0"));
  EXPECT_THAT(files.error(), AllOf(HasSubstr("labels.csv"), refused));
  fs::remove(files.folder / "g/labels.csv");
  files.write("edges.csv", "0,1\n1,2\n2,3\n");
  test::write_npy<int32_t>(files.folder / "g/labels.npy", {-1, 1, 1, -1}, {4});
  EXPECT_THAT(files.error(), AllOf(HasSubstr("labels.npy"), refused));
  test::write_bytes(files.folder / "g/labels.npy", test::npy_bytes<double>({-1, 1, 1, -1}, {4}, "<f8"));
  EXPECT_THAT(files.error(), AllOf(HasSubstr("labels.npy"), refused));
  fs::remove(files.folder / "g/labels.npy");
  files.write("labels.csv", "id,label\n0,-1\n1,1\n2,0\n3,-1\n");
  const Dataset data = files.import();
  EXPECT_THAT(files.report.lines, Contains("2 nodes have a negative label, which is read as no label"));
  EXPECT_THAT(files.report.lines, Contains("2 of 4 nodes have a label"));
  files.write("labels.csv", "id,label\n0,\n1,1\n2,1\n3,\n");  // blank: nobody means a class
  EXPECT_EQ(files.import().labels.class_of(1), 1);
}

TEST(DoubtfulFiles, NumbersWithoutZeroAreTheClassesThatOccur) {
  Doubtful files;
  const auto classes = [&] {
    const Dataset data = files.import();
    return std::vector<int>(data.labels.classes().begin(), data.labels.classes().end());
  };
  const auto told = Contains(HasSubstr("labels are numbers without 0: the 2 that occur are the classes ('1', '2')"));
  files.write("labels.csv", "id,label\na,1\nb,2\nc,2\nd,\n");
  EXPECT_THAT(classes(), ElementsAre(0, 1, 1, -1));
  EXPECT_THAT(files.import().class_names, ElementsAre("1", "2"));
  EXPECT_THAT(files.report.lines, told);
  files.write("labels.csv", "id,label\na,10\nb,200\nc,3\nd,10\n");
  EXPECT_THAT(classes(), ElementsAre(1, 2, 0, 1));
  EXPECT_THAT(files.import().class_names, ElementsAre("3", "10", "200"));
  // With class 0 numbers stand for themselves, also if one of them does not occur.
  files.write("labels.csv", "id,label\na,0\nb,3\nc,1\nd,0\n");
  EXPECT_THAT(classes(), ElementsAre(0, 3, 1, 0));
  EXPECT_TRUE(files.import().class_names.empty());
  EXPECT_THAT(files.report.lines, Contains("1 of 4 classes has no node: '2'"));
  // The same of arrays, text or not.
  fs::remove(files.folder / "g/labels.csv");
  files.write("edges.csv", "0,1\n1,2\n2,3\n");
  test::write_npy<int32_t>(files.folder / "g/labels.npy", {1, 2, 2, -1}, {4});
  EXPECT_THAT(classes(), ElementsAre(0, 1, 1, -1));
  EXPECT_THAT(files.report.lines, told);
  // As an earlier store has them.
  files.options.like = (files.folder / "like").string();
  files.write("features.csv", "x\n1\n2\n3\n4\n");
  test::write_text(files.folder / "l/edges.csv", "0,1\n1,2\n2,3\n");
  test::write_text(files.folder / "l/features.csv", "x\n1\n2\n3\n4\n");
  test::write_text(files.folder / "l/labels.csv", "0\n1\n2\n1\n");
  test::import(files.folder / "l", files.folder / "like");
  EXPECT_THAT(classes(), ElementsAre(1, 2, 2, -1));
  test::write_text(files.folder / "l/labels.csv", "5\n1\n2\n1\n");
  test::import(files.folder / "l", files.folder / "like");
  EXPECT_THAT(classes(), ElementsAre(0, 1, 1, -1));
  EXPECT_THAT(files.import().class_names, ElementsAre("1", "2", "5"));
}

TEST(DoubtfulFiles, AWordForNothingAmongClassNamesIsSaid) {
  Doubtful files;
  files.write("labels.csv", "id,label\na,red\nb,NA\nc,none\nd,\n");
  EXPECT_THAT(files.import().class_names, ElementsAre("NA", "none", "red"));
  for (const char* name : {"NA", "none"})
    EXPECT_THAT(files.report.lines,
                Contains(HasSubstr(fmt::format("label '{}' is read as the name of a class", name))));
  EXPECT_THAT(files.report.lines, Not(Contains(HasSubstr("label 'red'"))));
}

// Words over words: what the edges call their nodes tells.
TEST(DoubtfulFiles, AHeaderOfUnknownWordsIsNoNode) {
  Doubtful files;
  files.write("labels.csv", "user,kind\na,red\nb,blue\nc,red\nd,red\n");
  const Dataset data = files.import();
  EXPECT_EQ(data.num_nodes(), 4u);
  EXPECT_THAT(data.class_names, ElementsAre("blue", "red"));
  EXPECT_THAT(files.report.lines, Contains("labels.csv: first line read as a header (--labels-header no: as a row)"));
  files.write("labels.csv", "e,red\na,red\nb,blue\nc,red\nd,red\n");  // a node without an edge
  EXPECT_EQ(files.import().num_nodes(), 5u);
  files.options.labels_header = HeaderLine::kNo;
  files.write("labels.csv", "user,kind\na,red\nb,blue\nc,red\nd,red\n");
  EXPECT_EQ(files.import().num_nodes(), 5u);
}

TEST(DoubtfulFiles, LabelsAreNoFeatures) {
  Doubtful files;
  files.write("features.csv", "id,x,Label\na,1,0\nb,2,1\nc,3,0\nd,4,1\n");
  files.write("labels.csv", "id,label\na,0\nb,1\nc,0\nd,1\n");
  EXPECT_THAT(files.import().feature_names, ElementsAre("x"));
  EXPECT_THAT(files.report.lines, Contains(HasSubstr("left out as label or split: 'Label'")));
}

TEST(DoubtfulFiles, TrueAndFalseAreBits) {
  Doubtful files;
  files.write("labels.csv", "id,red,blue\na,True,False\nb,False,True\nc,True,True\nd,False,False\n");
  const Dataset data = files.import();
  ASSERT_TRUE(data.labels.multi_label());
  EXPECT_THAT(data.class_names, ElementsAre("red", "blue"));
  EXPECT_TRUE(data.labels.has(0, 0) && !data.labels.has(0, 1) && data.labels.has(1, 1) && data.labels.has(2, 0));
  files.write("labels.csv", "id,red,blue\na,True,False\nb,False,True\nc,True,maybe\nd,False,False\n");
  EXPECT_THAT(files.error(), HasSubstr("which column is the class?"));
}

// As PyTorch Geometric has them; y is the class, and a mask is no class.
TEST(DoubtfulFiles, MasksAreNoClasses) {
  Doubtful files;
  for (const char* masks : {"True,False", "1,0"}) {
    files.write("labels.csv", fmt::format("id,y,train_mask,test_mask\na,1,{0}\nb,0,{0}\nc,1,{0}\nd,0,{0}\n", masks));
    const Dataset data = files.import();
    EXPECT_FALSE(data.labels.multi_label());
    EXPECT_EQ(data.labels.class_of(0), 1);
    EXPECT_THAT(files.report.lines, Contains(HasSubstr("left out: 'train_mask', 'test_mask'")));
  }
}

TEST(DoubtfulFiles, OtherMasksAreClasses) {
  Doubtful files;
  files.write("labels.csv", "id,face_mask,gas_mask\na,1,1\nb,0,1\nc,1,0\nd,0,0\n");
  EXPECT_THAT(files.import().class_names, ElementsAre("face_mask", "gas_mask"));
}

// As pandas writes tables whose columns have no names.
TEST(DoubtfulFiles, NumberedColumnsOfTwoTablesAreNotTheSame) {
  Doubtful files;
  files.write("features.csv", ",0,1\na,1,2\nb,3,4\nc,5,6\nd,7,9\n");
  files.write("labels.csv", ",0\na,0\nb,1\nc,0\nd,1\n");
  EXPECT_THAT(files.import().feature_names, ElementsAre("0", "1"));
}

TEST(DoubtfulFiles, LargeWholeNumbersAreNamesOfClasses) {
  Doubtful files;
  files.write("labels.csv", "id,y\na,9007199254740993\nb,9007199254740995\nc,1\nd,1\n");
  EXPECT_EQ(files.import().labels.num_classes(), 3u);
}

TEST(DoubtfulFiles, ALineOfARowThatBeginsWithAHashIsNotSkipped) {
  Doubtful files;
  files.write("edges.csv", "# a comment\n\nsource,target\na,b\n#tag,b\n");
  const auto refused = AllOf(HasSubstr("begins with '#'"), HasSubstr("\"#tag\""));
  EXPECT_THAT(files.error(), AllOf(HasSubstr("edges.csv:5"), refused));
  files.write("edges.csv", "# a comment\n\nsource,target\na,b\n\"#tag\",b\n");
  EXPECT_EQ(files.import().ids.text(2), "#tag");
  files.write("features.csv", "id,x\na,1\nb,2\n#tag,3\n");
  EXPECT_THAT(files.error(), AllOf(HasSubstr("features.csv:4"), refused));
}

TEST(DoubtfulFiles, ListsOfRolesMayBeArraysOrBeCalledDev) {
  Doubtful files;
  files.write("train.txt", "a\nb\n");
  files.write("dev.txt", "c\n");
  files.write("test.txt", "d\n");
  EXPECT_THAT(files.roles(), ElementsAre(0, 0, 1, 2));
  for (const char* list : {"train.txt", "dev.txt", "test.txt"}) fs::remove(files.folder / "g" / list);
  const auto write_masks = [&] {
    const auto bits = [&](const char* name, std::vector<uint8_t> mask) {
      test::write_bytes(files.folder / "g" / name, test::npy_bytes(mask, {4}, "|b1"));
    };
    bits("train_mask.npy", {1, 1, 0, 0});
    bits("val_mask.npy", {0, 0, 1, 0});
    bits("test_mask.npy", {0, 0, 0, 1});
  };
  write_masks();
  EXPECT_THAT(files.error(), AllOf(HasSubstr("train_mask.npy: has rows, but only edges.csv says which nodes there are"),
                                   HasSubstr("train.txt, one id per line")));
  files.write("features.csv", "id,x\nd,1\nc,2\nb,3\na,4\n");
  EXPECT_THAT(files.roles(), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(files.report.lines, Contains("train_mask.npy: a mask, row i is row i of features.csv"));
  for (const int64_t two : {1, 2}) {  // integers are masks, too
    test::write_npy<int64_t>(files.folder / "g/train_mask.npy", {1, two, 0, 0}, {4});
    if (two == 1)
      EXPECT_THAT(files.roles(), ElementsAre(0, 0, 1, 2));
    else
      EXPECT_THAT(files.error(), HasSubstr("train_mask.npy: holds 2, and a mask has 0 and 1"));
  }
  fs::remove(files.folder / "g/train_mask.npy");
  files.write("train_mask.txt", "1\n1\n0\n0\n");  // no list of ids
  files.import();
  EXPECT_THAT(files.report.lines, Not(Contains(HasSubstr("train_mask.txt"))));
  fs::remove(files.folder / "g/train_mask.txt");
  test::write_npy<int64_t>(files.folder / "g/train_idx.npy", {0, 1}, {2});
  EXPECT_THAT(files.error(), AllOf(HasSubstr("train_idx.npy: holds row numbers, but the nodes have ids of their own"),
                                   HasSubstr("train_idx.txt, one id per line")));
  fs::remove(files.folder / "g/features.csv");
  files.write("edges.csv", "0,1\n1,2\n2,3\n");
  EXPECT_THAT(files.roles(), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(files.report.lines, Contains("train_idx.npy: a list of nodes, row i is node i"));
}

TEST(DoubtfulFiles, WhichRowAnArrayMeansIsSaid) {
  Doubtful files;
  test::write_npy<uint8_t>(files.folder / "g/split.npy", {0, 1, 2, 0}, {4});
  EXPECT_THAT(files.error(), HasSubstr("split.npy: has rows, but only edges.csv says which nodes there are"));
  files.write("edges.csv", "7,3\n3,5\n5,9\n");
  EXPECT_THAT(files.roles(), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(files.report.lines,
              Contains("split.npy: an array of roles, row i is the node with the i-th smallest id"));
  files.write("edges.csv", "source,target\na,b\nb,c\nc,d\n");
  files.write("features.csv", "id,x\nd,1\nc,2\nb,3\na,4\n");
  test::write_npy<int32_t>(files.folder / "g/labels.npy", {0, 1, 2, 0}, {4});
  const Dataset data = files.import();
  EXPECT_EQ(data.labels.class_of(1), 1);
  EXPECT_EQ(data.ids.text(1), "c");
  EXPECT_THAT(files.report.lines, Contains("labels.npy: an array, row i is row i of features.csv"));
  EXPECT_THAT(files.report.lines, Contains("split.npy: an array of roles, row i is row i of features.csv"));
}

}  // namespace
}  // namespace cgcn
