// Experiments run for real, on a tiny graph: every figure is found, what is there is not run again, Ctrl-C saves.
#include <algorithm>
#include <chrono>
#include <cmath>
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
           {"train", {"--epochs", "2", "--hidden", "8", "--parts", "4"}}, {"partition", {"--parts", "4"}}}) {
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
    EXPECT_EQ(result.data_notes, std::vector<std::string>{"ppi: generated, from --data"});
    EXPECT_FALSE(fs::exists(with_data.data / "ppi" / "partitions")) << "the user's store is left alone";
  }
}

TEST_F(Reproduce, AnImportedGraphIsCalledReal) {
  fs::create_directories(folder_ / "data");
  write_file_atomically(folder_ / "ring.csv", "0,1\n1,2\n2,3\n3,4\n4,5\n5,0\n");
  ASSERT_EQ(run({"import", "ring.csv", "data/ppi", "--quiet"}).exit_code, 0);
  Experiment experiment = tiny("partition", {"--parts", "2", "--transductive", "--aggregate", "none"});
  experiment.figures = {{.key = "quality.nodes", .label = "nodes"}};
  ReproduceOptions with_data = options();
  with_data.data = folder_ / "data";
  const ExperimentResult result = run_experiment(experiment, with_data);
  EXPECT_EQ(result.data_notes, std::vector<std::string>{"ppi: the real graph"});
  EXPECT_THAT(show_tables(experiment, result, with_data, TableFormat::kMarkdown),
              testing::HasSubstr("| row | real | 6.0 |"));
}

// Ours and the paper's have columns of their own; a graph that is smaller than the paper's says so on its row.
TEST_F(Reproduce, TablesSayWhatTheyCompare) {
  Experiment experiment = tiny("partition", {"--parts", "4"});
  experiment.figures = {{.key = "quality.nodes", .label = "nodes"}};
  experiment.title = "A <title>";
  experiment.published = {{{"row", "column"}, {56944}}};
  const ExperimentResult result = run_experiment(experiment, options());
  EXPECT_THAT(show_tables(experiment, result, options(), TableFormat::kText),
              testing::AllOf(testing::HasSubstr("       graph                   column\n"
                                                "                                 ours    paper\n"
                                                "  ───  ──────────────────────  ──────  ───────\n"
                                                "  row  generated, 0.02 × size   "),
                             testing::HasSubstr("  56944.0\n"), testing::HasSubstr("Not at the paper's size")));
  EXPECT_THAT(
      show_tables(experiment, result, options(), TableFormat::kMarkdown),
      testing::AllOf(testing::HasSubstr("|  | graph | column, ours | column, paper |\n| --- | --- | ---: | ---: |"),
                     testing::HasSubstr("| row | generated, 0.02 × size | ")));
  EXPECT_THAT(
      show_tables(experiment, result, options(), TableFormat::kHtml),
      testing::AllOf(testing::HasSubstr("<h1>A &lt;title>"), testing::HasSubstr("<td>generated, 0.02 × size</td>"),
                     testing::HasSubstr("<td class=\"number\">56944.0</td>")));
}

class ReproduceStopped : public Reproduce {
 protected:
  fs::path cells() const { return folder_ / "out" / "convergence-small"; }
  std::vector<fs::path> files(const std::string& extension) const {
    std::vector<fs::path> found;
    if (fs::exists(cells()))
      for (const auto& entry : fs::directory_iterator(cells()))
        if (entry.path().extension() == extension) found.push_back(entry.path());
    return found;
  }
  template <class Done>
  static bool wait_until(const Done& done) {
    const Timer patience;
    while (!done() && patience.seconds() < 100) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return done();
  }
  size_t epochs() const {  // that all runs have recorded
    size_t lines = 0;
    for (const fs::path& run : files(".run"))
      if (fs::exists(run / "metrics.jsonl")) {
        const std::string text = read_text_file(run / "metrics.jsonl");
        lines += static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
      }
    return lines;
  }
  const std::vector<std::string> command_ = {"reproduce", "convergence", "--output", "out", "--threads", "1"};
};

TEST_F(ReproduceStopped, CtrlCSavesTheCellAndTheNextRunContinues) {
  const pid_t program = start(command_);
  ASSERT_TRUE(wait_until([&] { return epochs() > 0; }));
  EXPECT_THAT(refused(command_), testing::HasSubstr("another reproduction is running in it"));
  ::kill(program, SIGINT);
  const Outcome outcome = finish(program);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.errors;
  EXPECT_TRUE(files(".json").empty()) << "a cell that was stopped is not done";
  ASSERT_EQ(files(".run").size(), 1u);
  const fs::path run = files(".run")[0];
  EXPECT_TRUE(fs::exists(run / "last.safetensors"));
  const size_t before = epochs();

  const pid_t next = start(command_);
  ASSERT_TRUE(wait_until([&] { return epochs() > before; }));
  ::kill(next, SIGINT);
  EXPECT_EQ(finish(next).exit_code, 130);
  EXPECT_EQ(files(".run")[0], run);
  const nlohmann::json environment = nlohmann::json::parse(read_text_file(run / "environment.json"));
  EXPECT_THAT(environment.at("command").dump(), testing::HasSubstr("--resume"));
  EXPECT_EQ(environment.at("threads"), 1);
}

}  // namespace
}  // namespace cgcn
