// People's own tables, from files to predictions: columns matched by name, encodings carried along, what training sees.
#include <fstream>

#include "common/random.h"
#include "program.h"

namespace cgcn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNodes = 150;

class TablesProgram : public test::ProgramTest {
 protected:
  void write(const std::string& file, const std::string& text) { std::ofstream(folder_ / file) << text; }

  // Three classes in a ring each; features tell them apart by names of columns and by a text.
  TablesProgram() {
    std::string edges = "buyer,seller\n", labels = "uid,label\n";
    for (int v = 0; v < kNodes; ++v) {
      for (const int step : {3, 6, 9}) edges += fmt::format("{},{}\n", id(v), id((v + step) % kNodes));
      labels += fmt::format("{},{}\n", id(v), std::array{"red", "green", "blue"}[static_cast<size_t>(v % 3)]);
    }
    write("edges.csv", edges);
    write("labels.csv", labels);
    write_features("features.csv", {"account_id", "age", "income", "plan", "visits"});
  }
  static int id(int v) { return 5000 + 7 * v; }
  static std::string value(int v, const std::string& column) {
    Random random(static_cast<uint64_t>(v), Purpose::kTest);
    const double noise = random.normal();
    if (column == "account_id") return std::to_string(id(v));
    if (column == "age") return v % 11 == 0 ? "" : fmt::format("{:.3f}", 40 + 10 * (v % 3) + noise);
    if (column == "income") return fmt::format("{:.2f}", v % 3 == 1 ? 3 + noise : noise);
    if (column == "plan") return v % 3 == 2 ? "gold" : "basic";
    return fmt::format("{}", v % 5);
  }
  void write_features(const std::string& file, const std::vector<std::string>& columns) {
    std::string text = fmt::format("{}\n", fmt::join(columns, ","));
    for (int v = kNodes - 1; v >= 0; --v) {
      std::vector<std::string> fields;
      for (const std::string& column : columns) fields.push_back(value(v, column));
      text += fmt::format("{}\n", fmt::join(fields, ","));
    }
    write(file, text);
  }
  Outcome import(const std::string& features, const std::string& store, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"import",   "edges.csv",  store,     "--features", features,
                                          "--labels", "labels.csv", "--split", "60/20/20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome;
  }
  const std::vector<std::string> encoded_ = {"--missing", "indicator", "--categorical", "one-hot"};
};

TEST_F(TablesProgram, ColumnsOfAnotherStoreAreMatchedByName) {
  const Outcome first = import("features.csv", "own", encoded_);
  EXPECT_THAT(first.output, HasSubstr("features.csv: column 'account_id' names the nodes; 4 columns: 'age', 'income', "
                                      "'plan', 'visits'"));
  EXPECT_THAT(first.output, HasSubstr("column 'age': 14 missing, filled with"));
  write_features("shuffled.csv", {"visits", "plan", "extra", "age", "account_id", "income"});
  import("shuffled.csv", "like", {"--like", "own"});  // in the order of the first
  import("shuffled.csv", "shuffled", encoded_);       // in its own
  write_features("fewer.csv", {"account_id", "visits", "age", "plan"});
  import("fewer.csv", "fewer", encoded_);
  for (const std::string scaling : {"", "--standardise", "--normalise-rows"}) {
    const std::string where = "run" + scaling;
    std::vector<std::string> more;
    if (!scaling.empty()) more.push_back(scaling);
    ASSERT_EQ(run(train("own", where, more, 20)).exit_code, 0);
    const std::string own = run({"predict", where, "--what", "probabilities"}).output;
    EXPECT_EQ(run({"predict", where, "like", "--what", "probabilities"}).output, own);
    const Outcome matched = run({"predict", where, "shuffled", "--what", "probabilities"});
    EXPECT_EQ(matched.output, own) << scaling;
    EXPECT_THAT(matched.errors, HasSubstr("matched by name; the model does not know 'extra'"));
    for (const char* kind : {"exact", "blocks"}) {
      auto scores = [&](const std::string& store) {
        nlohmann::json json = nlohmann::json::parse(
            run({"evaluate", where, store, "--json", "--evaluation", kind, "--evaluation-blocks", "3"}).output);
        json.erase("store");
        json.erase("seconds");
        return json;
      };
      EXPECT_EQ(scores("shuffled"), scores("own")) << scaling << " " << kind;
    }
    EXPECT_THAT(refused({"evaluate", where, "fewer"}),
                HasSubstr("has no feature column 'income', which the model was trained on"));
    EXPECT_THAT(refused({"predict", where, "fewer"}), HasSubstr("import it with --like"));
  }
}

TEST_F(TablesProgram, ModelsCarryNamesAndEncodings) {
  import("features.csv", "own", encoded_);
  ASSERT_EQ(run(train("own", "r")).exit_code, 0);
  const SavedModel saved = load_model(kept_checkpoint(folder_ / "r"));
  EXPECT_THAT(saved.trained_on.feature_names,
              testing::ElementsAre("age", "age (missing)", "income", "plan=basic", "plan=gold", "visits"));
  ASSERT_EQ(saved.trained_on.encoding.size(), 4u);
  EXPECT_GT(saved.trained_on.encoding[0].fill, 30);
  // Fitted on other nodes, a mean is another one: said, since nothing else shows it.
  import("features.csv", "other", {encoded_[0], encoded_[1], encoded_[2], encoded_[3], "--seed", "2"});
  EXPECT_THAT(run({"predict", "r", "other"}).errors, HasSubstr("missing values of 'age'"));
  EXPECT_THAT(run({"info", "own"}).output, HasSubstr("feature columns    'age', 'age (missing)', 'income'"));
}

TEST_F(TablesProgram, ColumnsWithoutNamesAreMatchedByPositionAndThatIsSaid) {
  write_features("plain.csv", {"account_id", "income", "visits"});
  import("plain.csv", "own");
  ASSERT_EQ(run(train("own", "r")).exit_code, 0);
  std::string text = read_text_file(folder_ / "plain.csv");
  write("nameless.csv", text.substr(text.find('\n') + 1));
  import("nameless.csv", "nameless", {"--id-column", "1", "--seed", "3"});
  const Outcome outcome = run({"predict", "r", "nameless"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("feature columns are matched by position"));
}

TEST_F(TablesProgram, ClassesNumberedFromOneArePredictedAsTheyWereWritten) {
  std::string labels = "uid,label\n", fewer = labels;
  for (int v = 0; v < kNodes; ++v) {
    labels += fmt::format("{},{}\n", id(v), 1 + v % 3);
    if (v % 3 > 0) fewer += fmt::format("{},{}\n", id(v), 1 + v % 3);
  }
  write("labels.csv", labels);
  import("features.csv", "own", encoded_);
  EXPECT_EQ(nlohmann::json::parse(read_text_file(folder_ / "own/meta.json"))["labels"]["classes"], 3);
  ASSERT_EQ(run(train("own", "r", {}, 20)).exit_code, 0);
  const std::string text = run({"predict", "r"}).output;
  EXPECT_THAT(text, HasSubstr(",3\n"));
  EXPECT_THAT(text, Not(HasSubstr(",0\n")));
  ASSERT_EQ(run({"predict", "r", "--output", "y.npy"}).exit_code, 0);
  const std::string bytes = read_text_file(folder_ / "y.npy");
  std::vector<int32_t> found(kNodes);
  std::memcpy(found.data(), bytes.data() + bytes.size() - kNodes * sizeof(int32_t), kNodes * sizeof(int32_t));
  std::string expected = "id,class\n";
  for (size_t v = 0; v < found.size(); ++v)
    expected += fmt::format("{},{}\n", id(kNodes - 1 - static_cast<int>(v)), found[v]);
  EXPECT_EQ(text, expected);
  // A graph that has other numbers of the same classes is matched by them.
  write("labels.csv", fewer);
  import("features.csv", "fewer", {encoded_[0], encoded_[1], encoded_[2], encoded_[3], "--force"});
  const auto scores = nlohmann::json::parse(run({"evaluate", "r", "fewer", "--json"}).output);
  EXPECT_EQ(scores["test"]["class_count"], 3);
  EXPECT_GT(scores["test"]["micro_f1"], 0.9);
}

TEST_F(TablesProgram, WhatTrainingSeesIsSaid) {
  const Outcome most = import("features.csv", "most", encoded_);
  EXPECT_THAT(most.output, HasSubstr("training   90 of 150 nodes (60.0 %) and "));
  EXPECT_THAT(most.output, HasSubstr(" %) between them\n"));
  std::string few = "uid,label\n";
  for (int v = 0; v < kNodes; ++v)
    if (v % 10 == 0) few += fmt::format("{},{}\n", id(v), v % 3);
  write("labels.csv", few);
  const Outcome partly = import("features.csv", "partly", encoded_);
  EXPECT_THAT(partly.output, HasSubstr("15 of 150 nodes have a label"));
  EXPECT_THAT(partly.output, HasSubstr("training   9 of 150 nodes (6.0 %)"));
  EXPECT_THAT(partly.output, Not(HasSubstr("transductive")));  // which train decides by itself
  const Outcome trained = run(train("partly", "r"));
  EXPECT_THAT(trained.errors, HasSubstr("training sees 9 of 150 nodes (6.0 %)"));
  EXPECT_THAT(trained.errors, HasSubstr("--transductive"));
  EXPECT_THAT(run(train("partly", "t", {"--transductive"})).errors, Not(HasSubstr("training sees")));
  const auto json = nlohmann::json::parse(
      import("features.csv", "json", {encoded_[0], encoded_[1], encoded_[2], encoded_[3], "--json"}).output);
  EXPECT_EQ(json["training"]["nodes"], 9);
}

}  // namespace
}  // namespace cgcn
