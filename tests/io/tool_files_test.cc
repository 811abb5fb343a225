// Files as other tools write them: what is recognised by its contents, what is refused and how, and labels that are one
// class per node in another form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/text/line_reader.h"
#include "text_support.h"

namespace cgcn {
namespace {

using test::write_text;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::string with_line_endings(std::string text, const std::string& ending) {
  std::string changed;
  for (const char c : text) changed += c == '\n' ? ending : std::string(1, c);
  return changed;
}

TEST(ToolFiles, EveryLineEndingIsOne) {
  const test::TemporaryFolder folder;
  const test::TextGraph graph(50, 120, false, 1);
  graph.write_edges(folder / "lf");
  const std::string hash = test::import(folder / "lf", folder / "store").content_hash;
  for (const std::string ending : {"\r", "\r\n", "\r\r\n"}) {
    for (const char* file : {"edges.csv", "features.csv", "labels.csv", "train.txt", "val.txt", "test.txt"})
      write_text(folder / "other" / file, with_line_endings(read_text_file(folder / "lf" / file), ending));
    EXPECT_EQ(test::import(folder / "other", folder / "store").content_hash, hash) << ending.size();
  }
}

TEST(ToolFiles, ReturnsAcrossBufferEndsAreSeen) {
  const test::TemporaryFolder folder;
  std::string text;  // several megabytes, of every alignment
  for (int i = 0; i < 400'000; ++i) text += fmt::format("{},{}\r", i, i / 2);
  write_text(folder / "edges.csv", text + "7,8");
  LineReader lines(folder / "edges.csv");
  std::string_view line;
  for (int i = 0; i < 400'000; ++i) {
    ASSERT_TRUE(lines.next(line));
    ASSERT_EQ(line, fmt::format("{},{}", i, i / 2));
  }
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "7,8");
  EXPECT_EQ(lines.line_number(), 400'001u);
  EXPECT_FALSE(lines.next(line));
}

// A pipe that nobody writes to must not keep the program waiting.
TEST(ToolFiles, APipeIsRefused) {
  const test::TemporaryFolder folder;
  write_text(folder / "edges.csv", "0,1\n1,2\n");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder / "pipe.npy").c_str(), 0600), 0);
  const auto is_a_pipe = AllOf(HasSubstr("/pipe"), HasSubstr("is a pipe"), HasSubstr("write its output to a file"));
  EXPECT_THAT(test::import_error(folder / "pipe"), is_a_pipe);
  EXPECT_THAT(test::import_error(folder / "pipe.npy"), is_a_pipe);
  ImportOptions as_text;
  as_text.format = "edges";
  EXPECT_THAT(test::import_error(folder / "pipe", as_text), is_a_pipe);
  for (std::string ImportOptions::*option :
       {&ImportOptions::features, &ImportOptions::labels, &ImportOptions::split_file})
    for (const char* name : {"pipe", "pipe.npy"}) {
      ImportOptions options;
      options.*option = (folder / name).string();
      EXPECT_THAT(test::import_error(folder / "edges.csv", options), is_a_pipe);
    }
}

TEST(ToolFiles, FormatsThatPythonReadsAreNamed) {
  const test::TemporaryFolder folder;
  write_text(folder / "edges.csv", "0,1\n1,2\n");
  struct Case {
    std::string bytes, name, way;
  };
  for (const auto& [bytes, name, way] :
       {Case{"PAR1\x15\x04", "Parquet", "pandas.read_parquet('t.parquet').to_csv('t.csv')"},
        Case{"ARROW1\1\1\1\1", "Feather", "pandas.read_feather('t.parquet').to_csv('t.csv')"},
        Case{"FEA1\1\1\1\1", "Feather", "pandas.read_feather"},
        Case{"\x89HDF\r\n\x1a\n\1\1", "HDF5", "h5py.File('t.parquet')"}}) {
    write_text(folder / "t.parquet", bytes);
    const auto named = AllOf(HasSubstr("t.parquet: is a " + name), HasSubstr(way));
    EXPECT_THAT(test::import_error(folder / "t.parquet"), named);
    for (std::string ImportOptions::*option :
         {&ImportOptions::features, &ImportOptions::labels, &ImportOptions::split_file}) {
      ImportOptions options;
      options.*option = (folder / "t.parquet").string();
      EXPECT_THAT(test::import_error(folder / "edges.csv", options), named);
    }
    write_text(folder / "t.csv", bytes);  // whatever it is called
    EXPECT_THAT(test::import_error(folder / "t.csv"), HasSubstr("t.csv: is a " + name));
  }
}

TEST(ToolFiles, ANameIsNoFormat) {
  const test::TemporaryFolder folder;
  write_text(folder / "edges.csv", "PAR1,ARROW1\nFEA1,PAR1\n");
  EXPECT_EQ(test::import(folder / "edges.csv", folder / "store").num_nodes(), 3u);
}

TEST(ToolFiles, ArraysBesideTextAreKnownByTheirContents) {
  const test::TemporaryFolder folder;
  const test::TextGraph graph(50, 120, false, 2);
  graph.write_edges(folder / "text");
  graph.write_plain(folder / "arrays");
  const std::string hash = test::import(folder / "text", folder / "store").content_hash;
  fs::copy(folder / "arrays" / "features.npy", folder / "features.of-mine");
  fs::copy(folder / "arrays" / "labels.npy", folder / "classes");
  ImportOptions options;
  options.features = (folder / "features.of-mine").string();
  options.labels = (folder / "classes").string();
  EXPECT_EQ(test::import(folder / "text", folder / "store", options).content_hash, hash);

  options.features = (folder / "text" / "features.csv").string();
  EXPECT_THAT(test::import_error(folder / "arrays", options),
              AllOf(HasSubstr("features.csv: is text, but the edges are an array, edge_index.npy"),
                    HasSubstr("give the edges as text too")));
}

TEST(ToolFiles, ALineOfAListIsOneId) {
  const test::TemporaryFolder folder;
  write_text(folder / "g" / "edges.csv", "New York,Los Angeles\nLos Angeles,\"Paris, France\"\nNew York,Rome\n");
  write_text(folder / "g" / "labels.csv", "id,label\nNew York,us\nLos Angeles,us\n\"Paris, France\",eu\nRome,eu\n");
  write_text(folder / "g" / "train.txt", "New York\nParis, France\n");
  write_text(folder / "g" / "val.txt", "\"Los Angeles\"\n");
  write_text(folder / "g" / "test.txt", "id\nRome\n");
  const Dataset data = test::import(folder / "g", folder / "store");
  EXPECT_EQ(data.split_sizes(), (std::array<uint64_t, 3>{2, 1, 1}));
  write_text(folder / "g" / "val.txt", "Los Santos\n");
  EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("val.txt:1: node 'Los Santos' is not in"));
}

// --- Labels of one class per node, as rows of 0 and 1

class OneHot : public ::testing::Test {
 protected:
  OneHot() {
    const test::TextGraph graph(50, 120, false, 3);
    graph.write_plain(folder_ / "plain");
    graph.write_edges(folder_ / "text");
    hash_ = test::import(folder_ / "plain", folder_ / "store").content_hash;
    for (NodeId v = 0; v < graph.n; ++v)
      for (int32_t c = 0; c < 4; ++c) {
        rows_.push_back(graph.labels[v] == c ? 1 : 0);
        text_ += fmt::format("{}{}", rows_.back(), c == 3 ? "\n" : ",");
      }
    test::write_npy<int32_t>(folder_ / "plain" / "labels.npy", rows_, {50, 4});
    write_text(folder_ / "text" / "labels.csv", text_);
  }

  const test::TemporaryFolder folder_;
  std::vector<int32_t> rows_;
  std::string hash_, text_;
};

TEST_F(OneHot, BecomesOneClassPerNodeAndThatIsSaid) {
  for (const char* source : {"plain", "text"}) {
    ImportReport report;
    const Dataset data = test::import(folder_ / source, folder_ / "store", {}, &report);
    EXPECT_FALSE(data.labels.multi_label());
    EXPECT_EQ(data.content_hash, hash_) << source;
    EXPECT_THAT(report.lines, Contains(HasSubstr("exactly one 1: read as one class per node (--multi-label")));
  }
}

TEST_F(OneHot, StaysMultiLabelWhereThatIsAsked) {
  ImportOptions options;
  options.multi_label = true;
  for (const char* source : {"plain", "text"}) {
    const Dataset data = test::import(folder_ / source, folder_ / "store", options);
    EXPECT_TRUE(data.labels.multi_label()) << source;
    EXPECT_NE(data.content_hash, hash_);
  }
  test::write_npy<int32_t>(folder_ / "plain" / "labels.npy", std::vector<int32_t>(50, 1), {50});
  EXPECT_THAT(test::import_error(folder_ / "plain", options),
              HasSubstr("--multi-label: the source has one class per node"));
}

TEST_F(OneHot, ARowOfNoneOrTwoMakesItMultiLabel) {
  for (const int32_t wrong : {0, 1}) {
    std::vector<int32_t> rows = rows_;
    for (size_t c = 0; c < 4; ++c) rows[c] = c < 2 ? wrong : 0;
    test::write_npy<int32_t>(folder_ / "plain" / "labels.npy", rows, {50, 4});
    ImportReport report;
    EXPECT_TRUE(test::import(folder_ / "plain", folder_ / "store", {}, &report).labels.multi_label()) << wrong;
    EXPECT_THAT(report.lines, Not(Contains(HasSubstr("exactly one 1"))));
  }
}

TEST_F(OneHot, AClassMapMayListSomeNodesOnly) {
  write_text(folder_ / "s" / "x-G.json",
             R"({"nodes": [{"id": 0}, {"id": 1}, {"id": 2}], "links": [{"source": 0, "target": 1}]})");
  write_text(folder_ / "s" / "x-class_map.json", R"({"0": [0, 1, 0], "2": [0, 0, 1]})");
  const Dataset data = test::import(folder_ / "s", folder_ / "store");
  ASSERT_FALSE(data.labels.multi_label());
  EXPECT_THAT(data.labels.classes(), ::testing::ElementsAre(1, -1, 2));
  EXPECT_EQ(data.labels.num_classes(), 3u);
  write_text(folder_ / "s" / "x-class_map.json", R"({"0": [0, 1, 0], "1": [0, 0, 0], "2": [0, 0, 1]})");
  EXPECT_TRUE(test::import(folder_ / "s", folder_ / "store").labels.multi_label());
}

}  // namespace
}  // namespace cgcn
