#include "reproduce/experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "common/error.h"
#include "reproduce/runner.h"
#include "support.h"

namespace cgcn {
namespace {

TEST(Experiments, AllAreWhole) {
  const std::vector<Experiment> all = all_experiments();
  EXPECT_EQ(all.size(), 13u);  // the tables and figures that have an experiment behind them
  for (const Experiment& experiment : all) {
    SCOPED_TRACE(experiment.name);
    EXPECT_FALSE(experiment.title.empty());
    EXPECT_FALSE(experiment.paper.empty());
    EXPECT_FALSE(experiment.question.empty());
    for (const ReproduceScale scale : {ReproduceScale::kSmall, ReproduceScale::kPaper}) {
      std::set<std::vector<std::string>> commands;
      const auto cells = experiment.cells(scale);
      EXPECT_EQ(cells.size(), experiment.rows.size() * experiment.columns.size());
      for (const Cell& cell : cells) {
        EXPECT_NO_THROW(experiment_data(cell.data));
        EXPECT_EQ(cell.published.size(), experiment.figures.size());
        if (!cell.runs) continue;
        std::vector<std::string> command = cell.options;
        command.push_back(cell.data);
        EXPECT_TRUE(commands.insert(command).second) << "two cells run the same";
      }
    }
  }
}

TEST(Experiments, ThePapersFiguresLieInTheirCells) {
  const Experiment experiment = find_experiment("depth-time");
  const auto cells = experiment.cells(ReproduceScale::kPaper);
  EXPECT_EQ(cells[0].row, "2 layers");
  EXPECT_DOUBLE_EQ(cells[0].published[0], 52.9);
  EXPECT_DOUBLE_EQ(cells.back().published[0], 1956);
  const auto large = find_experiment("amazon2m").cells(ReproduceScale::kPaper);
  EXPECT_DOUBLE_EQ(large[4].published[2], 90.41);
  EXPECT_TRUE(std::isnan(large[5].published[0]));  // the paper ran out of memory there
  const auto best = find_experiment("state-of-the-art").cells(ReproduceScale::kPaper);
  EXPECT_EQ(best[4].column, "GaAN");  // quoted by the paper, not run
  EXPECT_FALSE(best[4].runs);
  EXPECT_DOUBLE_EQ(best[4].published[0], 98.71);
}

TEST(Experiments, AnUnknownNameGetsTheNearest) {
  const std::string message = test::message_of<Error>([] { find_experiment("diagonals"); });
  EXPECT_NE(message.find("reproduce diagonal"), std::string::npos) << message;
}

TEST(Experiments, ABadFileIsRefused) {
  const auto message = [](const std::string& toml) {
    return test::message_of<Error>([&] { parse_experiment({"x", toml}); });
  };
  EXPECT_NE(message("title = ").find("experiments/x"), std::string::npos);
  EXPECT_NE(message("title = 'a'").find("has no row"), std::string::npos);
  EXPECT_NE(message("[[row]]\nname = 'a'\n[[column]]\nname = 'b'").find("no figures"), std::string::npos);
  EXPECT_NE(message("[[row]]\nname = 'a'\n[[column]]\nname = 'b'\n[[figure]]\nkey = 'k'\n[published.a]\nc = 1")
                .find("does not exist: a, c"),
            std::string::npos);
}

TEST(Figures, AreReadByPathSumAndStage) {
  const nlohmann::json document = {{"a", {{"b", 2}}}, {"c", 3}, {"stages", {{{"stage", "METIS"}, {"seconds", 4}}}}};
  EXPECT_DOUBLE_EQ(read_figure(document, "a.b"), 2);
  EXPECT_DOUBLE_EQ(read_figure(document, "a.b+c"), 5);
  EXPECT_DOUBLE_EQ(read_figure(document, "stages.METIS.seconds+c"), 7);
  EXPECT_TRUE(std::isnan(read_figure(document, "a.x")));
  EXPECT_TRUE(std::isnan(read_figure(document, "stages.layout.seconds")));
}

TEST(Tables, ShowOursAndThePapersInColumnsOfTheirOwn) {
  const Experiment experiment = find_experiment("partition-choice");
  ExperimentResult result;
  for (const Cell& cell : experiment.cells(ReproduceScale::kSmall))
    result.cells.push_back({.cell = cell, .figures = {80.25}});
  result.cells[0].figures[0] = NAN;
  result.cells[2].real = result.cells[3].real = true;
  const std::string text = show_tables(experiment, result, {}, TableFormat::kMarkdown);
  EXPECT_NE(text.find("| Cora | generated | – | 78.4 | 80.2 | 82.5 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| Pubmed | real | 80.2 | 78.9 |"), std::string::npos) << text;
}

TEST(Tables, HistogramsCountByBins) {
  const Experiment experiment = find_experiment("label-entropy");
  ExperimentResult result;
  for (const Cell& cell : experiment.cells(ReproduceScale::kSmall))
    result.cells.push_back({.cell = cell, .figures = {1, 2}, .lists = {{0.1, 0.49, 0.5, 2.2}}});
  result.cells[1].lists[0] = {0.7};
  const std::string text = show_tables(experiment, result, {}, TableFormat::kMarkdown);
  EXPECT_NE(
      text.find(
          "| 0 – 0.5 | 2 | 0 |\n| 0.5 – 1 | 1 | 1 |\n| 1 – 1.5 | 0 | 0 |\n| 1.5 – 2 | 0 | 0 |\n| 2 – 2.5 | 1 | 0 |"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace cgcn
