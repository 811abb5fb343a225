// Experiments run for real, on a tiny graph: every figure is found, what is there is not run again, Ctrl-C saves.
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "common/log.h"
#include "common/timer.h"
#include "program.h"
#include "reproduce/runner.h"

namespace cgcn {
namespace {

class Reproduce : public test::ProgramTest {
 protected:
  Reproduce() { log::set_level(log::Level::kQuiet); }
  ~Reproduce() override { log::set_level(log::Level::kNormal); }

  // One cell that shows every figure that the experiments with this command read.
  static Experiment tiny(const std::string& command, std::vector<std::string> options) {
    Experiment experiment;
    experiment.name = "tiny";
    experiment.command = command;
    experiment.small_data = 0.02;
    experiment.scale_options = {{ReproduceScale::kSmall, {}}, {ReproduceScale::kPaper, {}}};
    experiment.rows = {{.name = "row", .data = "ppi", .options = {}, .scale_options = experiment.scale_options}};
    experiment.columns = {
        {.name = "column", .data = "", .options = std::move(options), .scale_options = experiment.scale_options}};
    for (const Experiment& known : all_experiments())
      if (known.command == command)
        experiment.figures.insert(experiment.figures.end(), known.figures.begin(), known.figures.end());
    return experiment;
  }
  ReproduceOptions options() { return {.output = folder_ / "out", .program = CGCN_PROGRAM, .version = "test"}; }
};

TEST_F(Reproduce, EveryFigureIsFoundAndNothingRunsTwice) {
  for (const auto& [command, given] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"train", {"--epochs", "2", "--hidden", "8", "--parts", "4"}}, {"partition", {"--parts", "4", "--force"}}}) {
    const Experiment experiment = tiny(command, given);
    const ExperimentResult result = run_experiment(experiment, options());
    ASSERT_EQ(result.cells.size(), 1u);
    for (size_t f = 0; f < experiment.figures.size(); ++f)
      EXPECT_TRUE(std::isfinite(result.cells[0].figures[f])) << experiment.figures[f].key;
    ReproduceOptions again = options();
    again.program = "/nowhere";  // would fail if it ran anything
    EXPECT_EQ(run_experiment(experiment, again).cells[0].figures, result.cells[0].figures);
    again.version = "another";
    EXPECT_THROW(run_experiment(experiment, again), Error);
  }
}

TEST_F(Reproduce, AnotherFolderOfDataIsAnotherGraph) {
  Experiment experiment = tiny("partition", {"--parts", "4"});
  experiment.figures = {{.key = "quality.nodes", .label = "nodes"}};
  for (const int nodes : {600, 900}) {
    const std::string folder = std::to_string(nodes);
    fs::create_directories(folder_ / folder);
    ASSERT_EQ(run({"generate", folder + "/ppi", "--nodes", folder, "--split", "100/0/0", "--quiet"}).exit_code, 0);
    ReproduceOptions with_data = options();
    with_data.data = folder_ / folder;
    const ExperimentResult result = run_experiment(experiment, with_data);
    EXPECT_EQ(result.cells[0].figures[0], nodes);
    EXPECT_EQ(result.data_notes, std::vector<std::string>{"ppi: the real graph"});
  }
}

TEST_F(Reproduce, CtrlCSavesTheCellAndTheNextRunGoesOn) {
  const pid_t program = start({"reproduce", "convergence", "--output", "out"});
  const fs::path cells = folder_ / "out" / "convergence-small";
  const auto saved = [&] {
    if (fs::exists(cells))
      for (const auto& entry : fs::directory_iterator(cells))
        if (entry.path().extension() == ".run" && fs::exists(entry.path() / "metrics.jsonl")) return true;
    return false;
  };
  const Timer patience;
  while (!saved() && patience.seconds() < 100) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(saved());
  ::kill(program, SIGINT);
  const Outcome outcome = finish(program);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.errors;
  size_t checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(cells)) {
    EXPECT_NE(entry.path().extension(), ".json") << "a cell that was stopped is not done";
    checkpoints += fs::exists(entry.path() / "last.safetensors") ? 1 : 0;
  }
  EXPECT_EQ(checkpoints, 1u);
}

}  // namespace
}  // namespace cgcn
