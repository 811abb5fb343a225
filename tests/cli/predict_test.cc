// What predict writes: a class with its probability, the nodes without a label, and a few nodes as all of them.
#include <fstream>

#include "graph/store.h"
#include "program.h"

namespace cgcn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Predict : public test::ProgramTest {
 protected:
  // The rows of a CSV text without its header, cut at commas.
  static std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(csv);
    std::string line, field;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      rows.emplace_back();
      std::istringstream fields(line);
      while (std::getline(fields, field, ',')) rows.back().push_back(field);
    }
    return rows;
  }
  std::string predicted(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "predict");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  }
};

TEST_F(Predict, AClassComesWithItsProbability) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  const std::string text = predicted({"r", "--what", "class+probability"});
  EXPECT_THAT(text, testing::StartsWith("id,class,probability\n"));
  const auto both = rows_of(text), classes = rows_of(predicted({"r"})),
             probabilities = rows_of(predicted({"r", "--what", "probabilities"}));
  ASSERT_EQ(both.size(), 600u);
  for (size_t i = 0; i < both.size(); ++i) {
    ASSERT_EQ(both[i].size(), 3u);
    EXPECT_EQ(both[i][1], classes[i][1]);
    EXPECT_EQ(both[i][2], probabilities[i][1 + std::stoul(classes[i][1])]);
  }
  EXPECT_THAT(refused({"predict", "r", "--what", "class+probability", "--output", "x.npy"}), HasSubstr(".csv"));

  generate("multi", {"--multi-label"});
  ASSERT_EQ(run(train("multi", "m")).exit_code, 0);
  const std::string many = predicted({"m", "--what", "class+probability"});
  EXPECT_THAT(many, testing::StartsWith("id,classes,probabilities\n"));
  for (const auto& row : rows_of(many)) {
    if (row.size() < 3) continue;  // a node of no class
    EXPECT_EQ(std::count(row[1].begin(), row[1].end(), ';'), std::count(row[2].begin(), row[2].end(), ';'));
  }
}

TEST_F(Predict, OnlyNodesWithoutALabel) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  EXPECT_THAT(refused({"predict", "r", "--unlabelled"}), HasSubstr("every node has a label"));
  Dataset partly = Store(folder_ / "g").dataset();
  std::vector<int32_t> classes(partly.labels.classes().begin(), partly.labels.classes().end());
  for (const NodeId v : {5u, 17u, 400u}) classes[v] = -1;
  partly.labels = Labels::single(classes, partly.labels.num_classes());
  write_store(folder_ / "partly", partly, StagedDirectory::Existing::kRefuse);
  const auto all = rows_of(predicted({"r", "g"})), some = rows_of(predicted({"r", "partly", "--unlabelled"}));
  EXPECT_EQ(some, (std::vector<std::vector<std::string>>{all[5], all[17], all[400]}));
  write_file_atomically(folder_ / "ids", "17\n18\n");
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(rows_of(predicted({"r", "partly", "--unlabelled", "--nodes", "ids"})), Rows({all[17]}));
  write_file_atomically(folder_ / "ids",
                        "\xEF\xBB\xBF"
                        "17\r\n");  // as Notepad and Excel begin a file
  EXPECT_EQ(rows_of(predicted({"r", "partly", "--nodes", "ids"})), Rows({all[17]}));
  write_file_atomically(folder_ / "ids", "id\n17\n");
  EXPECT_THAT(refused({"predict", "r", "partly", "--nodes", "ids"}),
              AllOf(HasSubstr("ids:1: the graph has no node 'id'"), HasSubstr("without a header line")));
  write_file_atomically(folder_ / "ids", "18\n");
  EXPECT_THAT(refused({"predict", "r", "partly", "--unlabelled", "--nodes", "ids"}),
              HasSubstr("ids lists has a label"));
}

// Whether all nodes are computed or only the neighbourhood, and whether A·X is there or not.
TEST_F(Predict, AFewNodesAreWhatTheyAreAmongAll) {
  ASSERT_EQ(run({"generate", "g", "--nodes", "6000", "--edges", "6000", "--features", "30", "--quiet"}).exit_code, 0);
  write_file_atomically(folder_ / "ids", "5999\n12\n3000\n12\n");
  for (const bool standardise : {false, true}) {
    const std::string model = standardise ? "s" : "r";
    ASSERT_EQ(
        run(train("g", model, standardise ? std::vector<std::string>{"--standardise"} : std::vector<std::string>{}, 2))
            .exit_code,
        0);
    for (const char* what : {"probabilities", "embeddings"}) {
      const auto all = rows_of(predicted({model, "--what", what}));
      const std::vector expected{all[5999], all[12], all[3000], all[12]};
      EXPECT_EQ(rows_of(predicted({model, "--what", what, "--nodes", "ids"})), expected);
      fs::remove_all(folder_ / "g" / "cache");
      EXPECT_EQ(rows_of(predicted({model, "--what", what, "--nodes", "ids"})), expected);
      EXPECT_FALSE(fs::exists(folder_ / "g" / "cache"));  // A·X of all nodes was not needed
    }
  }
}

}  // namespace
}  // namespace cgcn
