// Options, recipes, schedules, run directories, standardised features.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/graph_builder.h"
#include "support.h"
#include "train/recipes.h"
#include "train/run_directory.h"
#include "train/run_options.h"
#include "train/standardise.h"

namespace cgcn {
namespace {

TEST(RunOptions, EveryRecipeNamesOptionsThatExist) {
  for (const Recipe& recipe : all_recipes()) {
    RunOptions options;
    OptionList list;
    options.list_options(list);
    apply_recipe(recipe, list);
    for (const auto& [name, value] : recipe.values) EXPECT_EQ(list.find(name)->text(), value) << recipe.name;
  }
  EXPECT_THAT(test::message_of<Error>([] { find_recipe("redit"); }), testing::HasSubstr("reddit"));
}

TEST(RunOptions, TomlHasEveryValueAndIsReadBack) {
  const test::TemporaryFolder folder;
  RunOptions options;
  options.train.learning_rate = 0.1 + 0.2;
  options.model.dropout = 0.1f;
  options.train.seed = 8'000'000'000'000'000'001;
  options.partition.from = "a \"quoted\" \\ name";
  OptionList list;
  options.list_options(list);
  write_file_atomically(folder / "x.toml", list.to_toml());
  RunOptions read;
  OptionList read_list;
  read.list_options(read_list);
  read_toml(folder / "x.toml", read_list);
  EXPECT_EQ(read_list.to_json(), list.to_json());
  EXPECT_EQ(read.train.learning_rate, options.train.learning_rate);
  EXPECT_EQ(read.train.seed, options.train.seed);
}

TEST(RunOptions, SchedulesFall) {
  TrainOptions options;
  options.epochs = 100;
  options.learning_rate = 2;
  EXPECT_EQ(options.learning_rate_at(99), 2);
  options.schedule = LearningRateSchedule::kCosine;
  EXPECT_EQ(options.learning_rate_at(0), 2);
  EXPECT_NEAR(options.learning_rate_at(50), 1, 1e-12);
  EXPECT_LT(options.learning_rate_at(99), 0.001);
  options.schedule = LearningRateSchedule::kStep;
  options.step_epochs = 30;
  EXPECT_EQ(options.learning_rate_at(29), 2);
  EXPECT_EQ(options.learning_rate_at(30), 1);
  EXPECT_EQ(options.learning_rate_at(60), 0.5);
}

TEST(RunDirectory, IsNumberedLockedAndNeverOverwritten) {
  const test::TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const RunDirectory first = RunDirectory::create("", "cora"), second = RunDirectory::create("", "cora");
  EXPECT_EQ(first.path(), "runs/cora-1");
  EXPECT_EQ(second.path(), "runs/cora-2");
  EXPECT_THAT(test::message_of<Error>([] { RunDirectory::create("runs/cora-1", "x"); }),
              testing::HasSubstr("is training in it"));
  EXPECT_THAT(test::message_of<Error>([] { RunDirectory::reopen("runs/cora-1"); }),
              testing::HasSubstr("train without --resume"));
  write_file_atomically(first.files().environment(), "{}");
  write_file_atomically(first.files().config(), "");
  EXPECT_THAT(test::message_of<Error>([] { RunDirectory::create("runs/cora-1", "x"); }),
              testing::HasSubstr("--resume to continue it"));
  EXPECT_THAT(test::message_of<Error>([] { RunDirectory::reopen("runs/cora-1"); }),
              testing::HasSubstr("is training in it"));
  fs::current_path(before);
}

TEST(RunDirectory, TornMetricsArePassedOver) {
  const test::TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "run", "");
  for (int epoch = 1; epoch <= 4; ++epoch) run.append_metrics({{"epoch", epoch}});
  write_file_atomically(run.files().metrics(), read_text_file(run.files().metrics()) + "{\"epoch\":5,\"lo");
  EXPECT_EQ(read_metrics(run.files().metrics()).size(), 4u);
  run.drop_metrics_from(3);
  EXPECT_EQ(read_text_file(run.files().metrics()), "{\"epoch\":1}\n{\"epoch\":2}\n");
  for (const char* wrong :
       {R"({"epoch":"3"})", R"({"epoch":3,"seconds":"1"})", R"({"epoch":3,"memory":1})", "[]", "{"}) {
    write_file_atomically(run.files().metrics(), std::string(R"({"epoch":1})") + "\n" + wrong + "\n");
    EXPECT_THAT(test::message_of<Error>([&] { run.drop_metrics_from(3); }),
                testing::HasSubstr("metrics.jsonl:2: is not an epoch's record"))
        << wrong;
  }
}

TEST(Standardise, TrainingRowsHaveMeanZeroAndDeviationOne) {
  constexpr NodeId kNodes = 3000;
  Dataset data;
  EdgeList edges;
  Random random(1, Purpose::kTest);
  for (int i = 0; i < 9000; ++i) edges.add(random.below(kNodes), random.below(kNodes));
  data.graph = build_graph(kNodes, edges, {}, nullptr);
  std::vector<float> values;
  std::vector<uint8_t> split;
  for (NodeId v = 0; v < kNodes; ++v) {
    split.push_back(static_cast<uint8_t>(random.below(3)));
    values.insert(values.end(), {5 + 3 * random.normal(), 1e-3f * random.normal(), 7});  // the last one is constant
  }
  data.features = FeatureMatrix::dense(values, 3);
  data.split = split;
  const Normalisation mean{NormalisationKind::kMean, 1};
  const PreparedFeatures made = standardise(data, mean, measure_columns(data));
  for (uint32_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0, rows = 0;
    for (NodeId v = 0; v < kNodes; ++v) {
      if (data.role(v) != Role::kTrain) continue;
      const double x = made.x.dense_row(v)[c];
      sum += x;
      squares += x * x;
      ++rows;
    }
    EXPECT_NEAR(sum / rows, 0, 1e-5);
    EXPECT_NEAR(squares / rows, c == 2 ? 0 : 1, 1e-4);
  }
  for (NodeId v = 0; v < kNodes; ++v) {
    double sum = 0;
    for (const NodeId u : data.graph.neighbours(v)) sum += made.x.dense_row(u)[0];
    const double degree = static_cast<double>(data.graph.degree(v));
    ASSERT_NEAR(made.aggregated.dense_row(v)[0], degree > 0 ? sum / degree : 0, 1e-4);
  }
}

}  // namespace
}  // namespace cgcn
