// The program as a user runs it: generate, train, evaluate, predict; stopping and killing it; and every refusal.
#include <chrono>
#include <set>
#include <thread>

#include "graph/npy.h"
#include "graph/store.h"
#include "program.h"

namespace cgcn {
namespace {

using testing::HasSubstr;

class EndToEnd : public test::ProgramTest {};

TEST_F(EndToEnd, TrainEvaluatePredictAgree) {
  generate("g");
  const Outcome trained = run(train("g", "r", {"--json"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const nlohmann::json summary = nlohmann::json::parse(trained.output);
  const nlohmann::json scores = nlohmann::json::parse(run({"evaluate", "r", "--json"}).output);
  EXPECT_EQ(scores["test"]["micro_f1"], summary["test"]["micro_f1"]);
  EXPECT_EQ(scores["validation"]["loss"], summary["validation"]["loss"]);

  ASSERT_EQ(run({"predict", "r", "--output", "classes.npy"}).exit_code, 0);
  const Dataset data = open_dataset(folder_ / "g");
  const MappedFile file(folder_ / "classes.npy");
  const NpyHeader header = parse_npy_header(file.bytes(), "classes.npy");
  ASSERT_EQ(header.shape, std::vector<uint64_t>{data.num_nodes()});
  const auto* classes = reinterpret_cast<const int32_t*>(file.bytes().data() + header.data_offset);
  uint64_t right = 0, nodes = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v) {
    if (data.role(v) != Role::kTest) continue;
    ++nodes;
    right += classes[v] == data.labels.class_of(v);
  }
  EXPECT_EQ(scores["test"]["accuracy"].get<double>(), static_cast<double>(right) / static_cast<double>(nodes));

  // A list of ids, in its order; probabilities add up to one.
  EXPECT_EQ(nlohmann::json::parse(run({"predict", "r", "--output", "c.csv", "--json"}).output)["columns"], 1);
  write_file_atomically(folder_ / "ids", "599\n3\n\n3\n");
  const Outcome some = run({"predict", "r", "--nodes", "ids"});
  EXPECT_EQ(some.output, fmt::format("id,class\n599,{0}\n3,{1}\n3,{1}\n", classes[599], classes[3]));
  ASSERT_EQ(run({"predict", "r", "--what", "probabilities", "--output", "p.csv"}).exit_code, 0);
  const std::string csv = read_text_file(folder_ / "p.csv");
  const std::string row = csv.substr(csv.find("\n0,") + 3, csv.find('\n', csv.find("\n0,") + 1) - csv.find("\n0,") - 3);
  double sum = 0;
  for (size_t at = 0; at < row.size(); at = row.find(',', at) == std::string::npos ? row.size() : row.find(',', at) + 1)
    sum += std::stod(row.substr(at));
  EXPECT_NEAR(sum, 1, 1e-5);
  ASSERT_EQ(run({"predict", "r", "--what", "embeddings", "--layer", "1", "--output", "e.npy"}).exit_code, 0);
  EXPECT_EQ(parse_npy_header(MappedFile(folder_ / "e.npy").bytes(), "e.npy").shape, (std::vector<uint64_t>{600, 16}));

  // Another graph with the same features; the block evaluation; what a person reads.
  generate("other", {"--seed", "2"});
  EXPECT_EQ(run({"evaluate", "r", "other"}).exit_code, 0);
  EXPECT_EQ(run({"evaluate", "r", "--evaluation", "blocks", "--evaluation-blocks", "3"}).exit_code, 0);
  EXPECT_THAT(run({"evaluate", "r"}).output, testing::AllOf(HasSubstr("test"), HasSubstr("precision")));
  EXPECT_THAT(run(train("g", "r2", {"--quiet"})).output,
              testing::AllOf(HasSubstr("F1"), HasSubstr("Time"), HasSubstr("Memory"), HasSubstr("Run")));
}

TEST_F(EndToEnd, OtherKindsOfData) {
  generate("multi", {"--multi-label"});
  generate("identity", {"--identity"});
  generate("no-validation", {"--split", "70/0/30"});
  EXPECT_EQ(run(train("multi", "r1", {"--standardise"})).exit_code, 0);
  EXPECT_EQ(run({"evaluate", "r1"}).exit_code, 0);
  EXPECT_THAT(run({"predict", "r1"}).output, testing::StartsWith("id,classes\n"));
  EXPECT_EQ(run(train("identity", "r2")).exit_code, 0);
  const Outcome outcome = run(train("no-validation", "r3"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("no validation nodes"));
  EXPECT_THAT(refused({"evaluate", "r1", "identity"}), HasSubstr("feature"));
  EXPECT_THAT(refused(train("identity", "r4", {"--standardise"})), HasSubstr("--standardise"));
  EXPECT_FALSE(fs::exists(folder_ / "r4"));  // nothing is left of what could not begin
}

TEST_F(EndToEnd, LaterSourcesOfOptionsWin) {
  generate("g");
  write_file_atomically(folder_ / "c.toml", "dropout = 0.3\nlr = 0.02\n[anything]\nlambda = 2\n");
  ASSERT_EQ(run({"train", "g", "--recipe", "ppi", "--config", "c.toml", "--lr", "0.03", "--epochs", "1", "--hidden",
                 "8", "--parts", "3", "--run", "r"})
                .exit_code,
            0);
  const RunOptions options = load_model(folder_ / "r" / "last.safetensors").options;
  EXPECT_EQ(options.model.layers, 3u);
  EXPECT_TRUE(options.train.standardise);        // the recipe's
  EXPECT_EQ(options.model.dropout, 0.3f);        // the file's, over the recipe's 0.2
  EXPECT_EQ(options.model.lambda, 2.0f);         // the file's, in a table
  EXPECT_EQ(options.train.learning_rate, 0.03);  // the command line's, over both
  EXPECT_EQ(options.model.hidden, 8u);
  // What a run wrote is what another reads.
  ASSERT_EQ(run({"train", "g", "--config", "r/config.toml", "--run", "again"}).exit_code, 0);
  EXPECT_EQ(weights("r"), weights("again"));
  EXPECT_EQ(read_text_file(folder_ / "r" / "config.toml"), read_text_file(folder_ / "again" / "config.toml"));
}

// What `auto` chooses is said with its reason and written down; what is given by hand wins, in config.toml too.
TEST_F(EndToEnd, ChoicesAreSaidWrittenAndOverruled) {
  generate("g");
  const auto trained = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "g", "--recipe", "auto", "--epochs", "2", "--run", name});
    Outcome outcome = run(std::move(more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome;
  };
  const Outcome said = trained("said", {});
  EXPECT_THAT(said.errors, HasSubstr("auto: --transductive: "));
  EXPECT_TRUE(load_model(folder_ / "said" / "last.safetensors").options.partition.transductive);
  EXPECT_THAT(read_text_file(folder_ / "said" / "config.toml"), HasSubstr("transductive = true"));
  EXPECT_THAT(trained("quiet", {"--quiet"}).errors, testing::Not(HasSubstr("auto:")));
  EXPECT_EQ(weights("said"), weights("quiet"));

  const nlohmann::json result = nlohmann::json::parse(trained("by-hand", {"--no-transductive", "--json"}).output);
  EXPECT_FALSE(load_model(folder_ / "by-hand" / "last.safetensors").options.partition.transductive);
  std::set<std::string> options;
  for (const nlohmann::json& choice : result.at("choices")) options.insert(choice.at("option").get<std::string>());
  EXPECT_EQ(options.count("transductive") + options.count("epochs"), 0u);
  EXPECT_GT(options.size(), 0u);
  // The line to paste, and the file, give the run again.
  ASSERT_EQ(run({"train", "g", "--config", "by-hand/config.toml", "--recipe", "auto", "--run", "again"}).exit_code, 0);
  EXPECT_EQ(weights("by-hand"), weights("again"));
  // A resumed run keeps its own.
  ASSERT_EQ(run({"train", "--run", "said", "--resume", "--quiet"}).exit_code, 0);
  EXPECT_EQ(weights("said"), weights("quiet"));
}

TEST_F(EndToEnd, RowsOfNegativeValuesAreNotDividedSilently) {
  generate("g");
  EXPECT_THAT(run(train("g", "r", {"--normalise-rows"})).errors, HasSubstr("a sum near 0"));
  EXPECT_THAT(run(train("g", "s", {"--standardise"})).errors, testing::Not(HasSubstr("near 0")));
}

// Which networks were tried is told where the choices are, and their time is the run's.
TEST_F(EndToEnd, TrialsAreRecorded) {
  generate("g");
  const Outcome trained =
      run({"train", "g", "--recipe", "auto", "--run", "r", "--hidden", "8", "--epochs", "30", "--json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const nlohmann::json result = nlohmann::json::parse(trained.output),
                       chosen = nlohmann::json::parse(read_text_file(folder_ / "r" / "choices.json"));
  EXPECT_EQ(chosen.at("choices"), result.at("choices"));
  EXPECT_EQ(chosen.at("trials"), result.at("trials"));
  EXPECT_GE(chosen["trials"].at("networks").size(), 3u);
  const double seconds = chosen["trials"].at("seconds").get<double>();
  EXPECT_GT(seconds, 0);
  EXPECT_THAT(result.at("stages"),
              testing::Contains(nlohmann::json{{"stage", "trying networks"}, {"seconds", seconds}}));
  EXPECT_GT(result.at("total_seconds").get<double>(), seconds + result.at("train_seconds").get<double>());
  EXPECT_THAT(read_text_file(folder_ / "r" / "report.html"), HasSubstr("networks tried"));
  // A folder in use is refused before anything is tried; a resumed run knows what was chosen for it.
  const Outcome again = run({"train", "g", "--recipe", "auto", "--run", "r"});
  EXPECT_THAT(again.errors, HasSubstr("already exists"));
  EXPECT_THAT(again.errors, testing::Not(HasSubstr("networks tried")));
  const nlohmann::json resumed = nlohmann::json::parse(run({"train", "--run", "r", "--resume", "--json"}).output);
  EXPECT_EQ(resumed.at("trials"), chosen["trials"]);
  EXPECT_EQ(resumed.at("choices"), chosen["choices"]);
}

TEST_F(EndToEnd, RefusesWithOneClearMessage) {
  generate("g");
  generate("other", {"--seed", "2"});
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  EXPECT_THAT(refused({"train", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(refused({"train", "g", "--recipe", "pppi"}), HasSubstr("ppi"));
  EXPECT_THAT(refused({"train", "g", "--memory", "1"}), HasSubstr("--memory"));
  EXPECT_THAT(refused(train("g", "r")), HasSubstr("--resume"));
  EXPECT_THAT(refused({"train", "--resume"}), HasSubstr("--run"));
  EXPECT_THAT(refused({"train", "--resume", "--run", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(refused({"train", "--resume", "--run", "r", "--hidden", "32"}), HasSubstr("--hidden"));
  EXPECT_THAT(refused({"train", "other", "--resume", "--run", "r", "--epochs", "8"}),
              HasSubstr("graph store has changed"));
  EXPECT_THAT(refused({"evaluate", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(refused({"predict", "r", "--layer", "9", "--what", "embeddings"}), HasSubstr("--layer"));
  EXPECT_THAT(refused({"predict", "r", "--output", "x.txt"}), HasSubstr(".npy"));
  write_file_atomically(folder_ / "ids", "3\n70000\n");
  EXPECT_THAT(refused({"predict", "r", "--nodes", "ids"}), HasSubstr("ids:2"));
  write_file_atomically(folder_ / "bad.toml", "epochs = 3\nhiden = 4\n");
  EXPECT_THAT(refused({"train", "g", "--config", "bad.toml"}),
              testing::AllOf(HasSubstr("bad.toml:2"), HasSubstr("hidden")));
  write_file_atomically(folder_ / "bad.toml", "epochs = = 3\n");
  EXPECT_THAT(refused({"train", "g", "--config", "bad.toml"}), HasSubstr("bad.toml:1"));
  // A damaged checkpoint.
  std::string bytes = read_text_file(folder_ / "r" / "best.safetensors");
  write_file_atomically(folder_ / "r" / "best.safetensors", bytes.substr(0, bytes.size() - 5));
  EXPECT_THAT(refused({"evaluate", "r"}), HasSubstr("best.safetensors"));
  // A learning rate that cannot end well.
  EXPECT_THAT(refused(train("g", "inf", {"--lr", "1e3", "--no-layer-norm", "--layers", "8"}, 300)),
              testing::AllOf(HasSubstr("epoch"), HasSubstr("step"), HasSubstr("layer")));
  EXPECT_THAT(read_text_file(folder_ / "inf" / "report.html"), HasSubstr(R"("state":"stopped")"));
}

TEST_F(EndToEnd, MisspeltWordsAreNamedWithWhatWasMeant) {
  const auto misused = [&](std::vector<std::string> arguments) {
    const Outcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.output, "");
    return outcome.errors;
  };
  EXPECT_EQ(misused({"train", "g", "--epohcs", "3"}),
            "error: unknown option --epohcs (did you mean --epochs?)\nhint: clustergcn train --help\n");
  EXPECT_THAT(misused({"train", "g", "--epohcs=3"}), HasSubstr("unknown option --epohcs (did you mean --epochs?)"));
  EXPECT_THAT(misused({"train", "g", "--no-layernorm"}), HasSubstr("(did you mean --no-layer-norm?)"));
  EXPECT_THAT(misused({"train", "g", "-e", "3"}), HasSubstr("unknown option -e"));
  EXPECT_THAT(misused({"train", "g", "--task", "regression"}), HasSubstr("unknown option --task (`import` has it)"));
  EXPECT_THAT(misused({"trian", "g"}), HasSubstr("error: unknown command 'trian' (did you mean 'train'?)"));
  EXPECT_THAT(misused({"--verison"}), HasSubstr("unknown option --verison (did you mean --version?)"));
  EXPECT_THAT(misused({}), testing::AllOf(HasSubstr("Usage: clustergcn"), HasSubstr("\n  import "),
                                          HasSubstr("\n  report "), testing::Not(HasSubstr("is required"))));
  EXPECT_THAT(misused({"evaluate"}), HasSubstr("error: RUN is required\nhint: clustergcn evaluate --help"));
  EXPECT_THAT(refused({"train", "g", "--schedule", "cosin"}),
              HasSubstr("--schedule: 'cosin' is not one of constant, cosine, step (did you mean 'cosine'?)"));
  EXPECT_THAT(refused({"train", "g", "--recipe", "pppi"}), HasSubstr("unknown recipe 'pppi' (did you mean 'ppi'?)"));
  EXPECT_THAT(refused({"import", "g", "s", "--format", "planetoit"}), HasSubstr("(did you mean 'planetoid'?)"));
}

TEST_F(EndToEnd, HelpNamesFlagsAsTheyAreTyped) {
  const Outcome help = run({"train", "--help-all"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output,
              testing::AllOf(HasSubstr("--[no-]layer-norm "), HasSubstr("--json "), testing::Not(HasSubstr("{"))));
}

TEST_F(EndToEnd, MoreEpochsLaterEqualMoreEpochsAtOnce) {
  generate("g");
  ASSERT_EQ(run(train("g", "whole")).exit_code, 0);
  ASSERT_EQ(run(train("g", "parts", {}, 2)).exit_code, 0);
  ASSERT_EQ(run({"train", "--resume", "--run", "parts", "--epochs", "6", "--threads", "1"}).exit_code, 0);
  EXPECT_EQ(weights("whole"), weights("parts"));
}

TEST_F(EndToEnd, ControlCSavesAndSaysHowToGoOn) {
  generate("g");
  const std::vector<std::string> arguments = train("g", "r", {"--eval-every", "1000"}, 100000);
  const pid_t child = start(arguments);
  while (read_metrics(folder_ / "r" / "metrics.jsonl").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(refused({"train", "--resume", "--run", "r"}), HasSubstr("is training in it"));
  ::kill(child, SIGINT);
  const Outcome stopped = finish(child);
  EXPECT_EQ(stopped.exit_code, 130);
  EXPECT_THAT(stopped.errors, HasSubstr("clustergcn train --run r --resume"));
  EXPECT_GT(load_model(folder_ / "r" / "last.safetensors").state.step, 0u);
  EXPECT_THAT(read_text_file(folder_ / "r" / "report.html"), HasSubstr(R"("state":"stopped")"));
}

// kill -9 at any moment loses at most what came after the last checkpoint, and never a file that was whole.
TEST_F(EndToEnd, KilledAtRandomMomentsItEndsInTheSameModel) {
  generate("g");
  const std::vector<std::string> more = {"--checkpoint-seconds", "0"};
  ASSERT_EQ(run(train("g", "whole", more, 40)).exit_code, 0);
  Random random(9, Purpose::kTest);
  int kills = 0;
  uint64_t furthest = 0;
  for (bool done = false; !done;) {
    std::error_code problem;
    const bool begun = fs::exists(folder_ / "killed" / "config.toml", problem);
    if (!begun) fs::remove_all(folder_ / "killed", problem);
    const pid_t child = start(begun ? std::vector<std::string>{"train", "--resume", "--run", "killed", "g"}
                                    : train("g", "killed", more, 40));
    if (++kills <= 25) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random.below(400)));
      ::kill(child, SIGKILL);
    }
    const Outcome outcome = finish(child);
    done = outcome.exit_code == 0;
    ASSERT_TRUE(done || outcome.exit_code == -SIGKILL) << outcome.errors;
    if (!fs::exists(folder_ / "killed" / "last.safetensors", problem)) continue;
    const uint64_t step = load_model(folder_ / "killed" / "last.safetensors").state.step;
    EXPECT_GE(step, furthest);
    furthest = step;
  }
  EXPECT_EQ(weights("whole"), weights("killed"));
  EXPECT_EQ(weights("whole", "best.safetensors"), weights("killed", "best.safetensors"));
  const auto whole = read_metrics(folder_ / "whole" / "metrics.jsonl"),
             killed = read_metrics(folder_ / "killed" / "metrics.jsonl");
  ASSERT_EQ(whole.size(), killed.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i]["loss"], killed[i]["loss"]);
}

}  // namespace
}  // namespace cgcn
