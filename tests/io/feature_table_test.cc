// Features as real tables hold them: names, missing values, texts, dates; encoded as training nodes say, and again.
#include <gmock/gmock.h>

#include "text_support.h"

namespace cgcn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> row_of(const Dataset& data, NodeId v) {
  const auto row = data.features.dense_row(v);
  return {row.begin(), row.end()};
}

// Four nodes: two of training, one of validation, one of test.
struct Table {
  test::TemporaryFolder folder;
  ImportOptions options;
  ImportReport report;

  explicit Table(const std::string& features) {
    test::write_text(folder / "g/edges.csv", "a,b\nb,c\nc,d\n");
    test::write_text(folder / "g/split.csv", "id,split\na,train\nb,train\nc,val\nd,test\n");
    test::write_text(folder / "g/features.csv", features);
  }
  Dataset import() {
    report = {};
    return test::import(folder / "g", folder / "s", options, &report);
  }
  std::string error() { return test::import_error(folder / "g", options); }
};

TEST(FeatureTable, KeepsTheNamesOfItsColumns) {
  Table table("id,age,income\na,1,2\nb,3,4\nc,5,6\nd,7,8\n");
  const Dataset data = table.import();
  EXPECT_THAT(data.feature_names, ElementsAre("age", "income"));
  EXPECT_TRUE(data.encoding.empty());
  Table nameless("a,1,2\nb,3,4\nc,5,6\nd,7,8\n");
  EXPECT_TRUE(nameless.import().feature_names.empty());
  EXPECT_EQ(data.content_hash, nameless.import().content_hash);  // names are not content
}

TEST(FeatureTable, RefusesMissingValuesByColumn) {
  for (const char* blank : {"", "NA", "NaN", "nan", "null"}) {
    Table table(fmt::format("id,age,income\na,1,2\nb,3,{}\nc,{},6\nd,7,8\n", blank, blank));
    EXPECT_THAT(table.error(), HasSubstr("features.csv:3: missing values in column 'age' (1), column 'income' (1)"));
    EXPECT_THAT(table.error(), HasSubstr("--missing mean, zero or indicator"));
    EXPECT_THAT(table.error(), HasSubstr("--drop-columns age,income"));
  }
}

TEST(FeatureTable, FillsMissingValuesFromTrainingNodesOnly) {
  Table table("id,age,income\na,1,2\nb,,4\nc,100,NA\nd,,8\n");
  table.options.missing = MissingValues::kMean;
  const Dataset mean = table.import();
  EXPECT_THAT(row_of(mean, 1), ElementsAre(1, 4));  // the mean of a, the only training node that has a value
  EXPECT_THAT(row_of(mean, 2), ElementsAre(100, 3));
  EXPECT_THAT(row_of(mean, 3), ElementsAre(1, 8));
  EXPECT_THAT(table.report.lines, Contains("column 'age': 2 missing, filled with 1, the mean over training nodes"));
  table.options.missing = MissingValues::kZero;
  EXPECT_THAT(row_of(table.import(), 2), ElementsAre(100, 0));
  table.options.missing = MissingValues::kIndicator;
  const Dataset marked = table.import();
  EXPECT_THAT(marked.feature_names, ElementsAre("age", "age (missing)", "income"));
  EXPECT_THAT(row_of(marked, 0), ElementsAre(1, 0, 2));
  EXPECT_THAT(row_of(marked, 1), ElementsAre(1, 1, 4));
  EXPECT_THAT(row_of(marked, 2), ElementsAre(100, 0, 3));
}

TEST(FeatureTable, TextsBecomeColumnsOfTheirCategories) {
  Table table("id,country,member\na,FR,True\nb,DE,false\nc,FR,true\nd,PL,False\n");
  EXPECT_THAT(table.error(), HasSubstr("features.csv:2: text in column 'country' ('FR')"));
  EXPECT_THAT(table.error(), HasSubstr("--categorical one-hot"));
  table.options.categorical = Categorical::kOneHot;
  const Dataset data = table.import();
  EXPECT_THAT(data.feature_names, ElementsAre("country=DE", "country=FR", "member"));
  EXPECT_THAT(row_of(data, 0), ElementsAre(0, 1, 1));
  EXPECT_THAT(row_of(data, 1), ElementsAre(1, 0, 0));
  EXPECT_THAT(row_of(data, 3), ElementsAre(0, 0, 0));  // no training node is from PL
  EXPECT_THAT(table.report.lines, Contains("column 'country': one-hot, 2 categories; 1 value that is no category: 0 in "
                                           "all of them"));
  table.options.drop_columns = "country";
  table.options.categorical = Categorical::kRefuse;
  EXPECT_THAT(table.import().feature_names, ElementsAre("member"));
  EXPECT_THAT(table.report.lines, Contains(HasSubstr("left out: 'country'")));
}

// One file of features, labels and split: what is to be predicted is no feature.
TEST(FeatureTable, LeavesOutTheColumnsOfLabelsAndSplit) {
  Table table("id,age,kind,split\na,1,red,train\nb,3,blue,train\nc,5,red,val\nd,7,blue,test\n");
  table.options.labels = table.options.split_file = (table.folder / "g/features.csv").string();
  table.options.label_column = "kind";
  const Dataset data = table.import();
  EXPECT_THAT(data.feature_names, ElementsAre("age"));
  EXPECT_THAT(data.class_names, ElementsAre("blue", "red"));
  EXPECT_EQ(data.role(3), Role::kTest);
  EXPECT_THAT(table.report.lines, Contains(HasSubstr("1 column: 'age'; left out as label or split: 'kind', 'split'")));
  table.options.split_file = "none";  // then 'split' is a column like others
  table.options.split = "50/25/25";
  table.options.categorical = Categorical::kOneHot;
  EXPECT_THAT(table.import().feature_names, Contains("age"));
  EXPECT_THAT(table.report.lines, Contains(HasSubstr("2 columns: 'age', 'split'; left out as label or split: 'kind'")));

  Table bits("id,first,second\na,0,1\nb,1,0\nc,1,1\nd,0,0\n");
  bits.options.labels = (bits.folder / "g/features.csv").string();
  EXPECT_THAT(bits.error(), HasSubstr("has no column of features"));
  EXPECT_THAT(bits.error(), HasSubstr("--label-column NAME chooses one"));
  bits.options.label_column = "second";
  EXPECT_THAT(bits.import().feature_names, ElementsAre("first"));
}

TEST(FeatureTable, RefusesDatesAndOddTextsByColumn) {
  for (const char* date : {"2021-03-04", "2021-03-04 10:15:00", "4/3/2021", "04.03.2021", "2021/03/04", "2021-03"}) {
    Table table(fmt::format("id,x,signup\na,1,{}\nb,2,{}\nc,3,\nd,4,{}\n", date, date, date));
    table.options.categorical = Categorical::kOneHot;
    table.options.missing = MissingValues::kMean;
    EXPECT_THAT(table.error(), HasSubstr(fmt::format("column 'signup' holds dates, such as '{}'", date)));
    EXPECT_THAT(table.error(), HasSubstr("--drop-columns signup"));
  }
  Table odd("id,age\na,1\nb,2\nc,unknown\nd,4\n");
  odd.options.categorical = Categorical::kOneHot;
  EXPECT_THAT(odd.error(), HasSubstr("features.csv:4: column 'age' holds 'unknown', which is not a number"));
  Table nothing("id,age,x\na,,1\nb,,1\nc,,1\nd,,1\n");
  nothing.options.missing = MissingValues::kMean;
  EXPECT_THAT(nothing.error(), HasSubstr("column 'age' holds no value at all"));
}

TEST(FeatureTable, FittingNeedsTrainingNodes) {
  Table table("id,age\na,1\nb,\nc,3\nd,4\n");
  table.options.missing = MissingValues::kMean;
  table.options.split_file = "none";
  EXPECT_THAT(table.error(), HasSubstr("fitted on training nodes, and there are none"));
  table.options.missing = MissingValues::kZero;  // needs no fit
  EXPECT_EQ(row_of(table.import(), 1)[0], 0);
}

// A later table: other order, other missing values, categories that were not there; encoded as the first one was.
TEST(FeatureTable, IsEncodedLikeAnEarlierStore) {
  Table first("id,age,country\na,1,FR\nb,3,DE\nc,,FR\nd,7,PL\n");
  test::write_text(first.folder / "g/labels.csv", "id,label\na,red\nb,blue\nc,red\nd,green\n");
  first.options.missing = MissingValues::kMean;
  first.options.categorical = Categorical::kOneHot;
  const Dataset trained = first.import();
  EXPECT_EQ(trained.encoding.size(), 2u);
  EXPECT_EQ(trained.encoding[0].fill, 2);

  Table later("country,note,id,age\nPL,x,a,\nFR,y,b,50\n,z,c,60\nDE,,d,70\n");
  test::write_text(later.folder / "g/labels.csv", "id,label\na,red\nb,red\nc,red\nd,red\n");
  later.options.like = first.folder / "s";
  const Dataset data = later.import();
  EXPECT_EQ(data.feature_names, trained.feature_names);
  EXPECT_EQ(data.encoding, trained.encoding);
  EXPECT_THAT(row_of(data, 0), ElementsAre(2, 0, 0));  // the mean of the first table
  EXPECT_THAT(row_of(data, 1), ElementsAre(50, 0, 1));
  EXPECT_THAT(row_of(data, 2), ElementsAre(60, 0, 0));
  EXPECT_THAT(row_of(data, 3), ElementsAre(70, 1, 0));
  EXPECT_EQ(data.class_names, trained.class_names);
  EXPECT_EQ(data.labels.class_of(0), 2);  // blue, green, red
  EXPECT_THAT(later.report.lines, Contains(HasSubstr("left out: 'note'; encoded as in")));
  EXPECT_THAT(later.report.lines, Contains(HasSubstr("1 value that is no category")));

  Table without("id,country\na,FR\nb,FR\nc,FR\nd,FR\n");
  without.options.like = first.folder / "s";
  EXPECT_THAT(without.error(), HasSubstr("has no column 'age', which"));
  Table other("id,age,country\na,1,FR\nb,3,DE\nc,5,FR\nd,7,PL\n");
  test::write_text(other.folder / "g/labels.csv", "id,label\na,red\nb,violet\nc,red\nd,red\n");
  other.options.like = first.folder / "s";
  EXPECT_THAT(other.error(), HasSubstr("does not have: 'violet'"));
}

TEST(FeatureTable, ManyDifferentTextsAreNoCategories) {
  std::string features = "id,comment\n", split = "id,split\n", edges;
  for (int i = 0; i < 1500; ++i) {
    features += fmt::format("n{},text {}\n", i, i);
    split += fmt::format("n{},train\n", i);
    edges += fmt::format("n{},n{}\n", i, (i + 1) % 1500);
  }
  Table table(features);
  test::write_text(table.folder / "g/edges.csv", edges);
  test::write_text(table.folder / "g/split.csv", split);
  table.options.categorical = Categorical::kOneHot;
  EXPECT_THAT(table.error(), HasSubstr("column 'comment' has more than 1000 different texts"));
}

TEST(FeatureTable, TableOptionsAreRefusedWhereThereIsNoTable) {
  const test::TemporaryFolder folder;
  test::TextGraph(5, 4, false, 1).write_plain(folder / "g");
  ImportOptions options;
  options.missing = MissingValues::kMean;
  EXPECT_THAT(test::import_error(folder / "g", options), HasSubstr("--missing: is for tables of text"));
  options = {};
  options.id_column = "id";
  EXPECT_THAT(test::import_error(folder / "g", options), HasSubstr("--id-column: is for tables of text"));
  Table table("id,age\na,1\nb,2\nc,3\nd,4\n");
  table.options.label_column = "age";
  EXPECT_THAT(table.error(), HasSubstr("--label-column: there is no text file of labels"));
  test::write_npy<int32_t>(table.folder / "g/labels.npy", {0, 1, 0, 1}, {4});
  EXPECT_THAT(table.error(), HasSubstr("--label-column: there is no text file of labels"));
  fs::remove(table.folder / "g/labels.npy");
  table.options = {};
  table.options.features = "none";
  table.options.drop_columns = "age";
  EXPECT_THAT(table.error(), HasSubstr("--drop-columns: there is no text file of features"));
  table.options = {};
  table.import();
  fs::rename(table.folder / "s", table.folder / "first");
  table.options.like = table.folder / "first";
  table.options.missing = MissingValues::kMean;
  EXPECT_THAT(table.error(), HasSubstr("--missing: the encoding is that of --like"));
}

}  // namespace
}  // namespace cgcn
