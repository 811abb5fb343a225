// One budget for the whole process: what the kernel says it took, the same bits as without a limit, and refusals that
// name a budget that works.
#include "common/memory.h"

#include <sys/resource.h>
#include <zlib.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <numeric>
#include <regex>
#include <thread>

#include "common/random.h"
#include "graph/graph_builder.h"
#include "graph/store.h"
#include "program.h"

namespace cgcn {
namespace {

using testing::HasSubstr;

class Memory : public test::ProgramTest {
 protected:
  // A store of about 160 MB, and its partition and A·X of about 200 MB more.
  void generate_large() {
    ASSERT_EQ(
        run({"generate", "g", "--nodes", "60000", "--edges", "1500000", "--features", "500", "--quiet"}).exit_code, 0);
    ASSERT_EQ(run({"partition", "g", "--parts", "200", "--quiet"}).exit_code, 0);
  }
  static std::vector<std::string> train_large(const std::string& run, const std::string& memory, int epochs = 2) {
    return {"train",     "g",  "--run",       run,    "--parts",      "200",
            "--hidden",  "32", "--per-batch", "4",    "--eval-every", "1",
            "--threads", "2",  "--memory",    memory, "--epochs",     std::to_string(epochs)};
  }
  // The most that the program had resident, as the kernel counted it.
  uint64_t peak_of(std::vector<std::string> arguments, Outcome& outcome) {
    const pid_t child = start(std::move(arguments));
    uint64_t peak = 0;
    const std::string status_file = fmt::format("/proc/{}/status", child);
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) {
      std::ifstream status(status_file);
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) peak = std::max<uint64_t>(peak, std::stoull(line.substr(6)) * 1024);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    outcome = finish(child);
    return peak;
  }
};

TEST_F(Memory, PeakStaysUnderTheBudgetAndNoBitChanges) {
  generate_large();
  const uint64_t budget = 140;
  Outcome whole, tight;
  EXPECT_GT(peak_of(train_large("whole", "auto"), whole), budget << 20);  // so that the limit does something
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_THAT(whole.errors, HasSubstr("features in memory"));
  EXPECT_LT(peak_of(train_large("tight", fmt::format("{}M", budget)), tight), budget << 20) << tight.errors;
  ASSERT_EQ(tight.exit_code, 0) << tight.errors;
  EXPECT_THAT(tight.errors, HasSubstr("features from disk"));
  EXPECT_EQ(weights("tight"), weights("whole"));
  const auto scores = [&](const std::string& run) {
    return read_metrics(folder_ / run / "metrics.jsonl").back().at("validation");
  };
  EXPECT_EQ(scores("tight"), scores("whole"));

  Outcome evaluated;
  EXPECT_LT(peak_of({"evaluate", "whole", "--json", "--memory", "140M", "--threads", "2"}, evaluated), budget << 20);
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_EQ(nlohmann::json::parse(evaluated.output).at("test"),
            nlohmann::json::parse(run({"evaluate", "whole", "--json"}).output).at("test"));
  const std::vector<std::string> half{"evaluate", "whole", "--json", "--precision", "bfloat16", "--threads", "2"};
  std::vector<std::string> tight_half = half;
  tight_half.insert(tight_half.end(), {"--memory", "140M"});
  EXPECT_LT(peak_of(tight_half, evaluated), budget << 20);
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_EQ(nlohmann::json::parse(evaluated.output).at("test"), nlohmann::json::parse(run(half).output).at("test"));
  Outcome predicted;
  EXPECT_LT(peak_of({"predict", "whole", "--output", "p.npy", "--memory", "140M", "--threads", "2"}, predicted),
            budget << 20);
  EXPECT_EQ(predicted.exit_code, 0) << predicted.errors;
  Outcome partitioned;
  EXPECT_LT(peak_of({"partition", "g", "--parts", "100", "--memory", "200M", "--threads", "2"}, partitioned),
            uint64_t{200} << 20);
  EXPECT_EQ(partitioned.exit_code, 0) << partitioned.errors;
}

// Tables per node that are read to describe a run are given back before its first step: they are in no plan.
TEST_F(Memory, TablesOfManyNodesStayWithinTheBudget) {
  ASSERT_EQ(
      run({"generate", "g", "--nodes", "4000000", "--edges", "4000000", "--features", "4", "--classes", "3", "--quiet"})
          .exit_code,
      0);
  ASSERT_EQ(run({"partition", "g", "--parts", "400", "--partitioner", "random", "--quiet"}).exit_code, 0);
  const std::vector<std::string> train{
      "train",         "g",      "--run",   "r",   "--recipe", "none", "--layers", "2",    "--hidden",  "4",
      "--partitioner", "random", "--parts", "400", "--epochs", "1",    "--memory", "240M", "--threads", "2"};
  Outcome outcome;
  EXPECT_LT(peak_of(train, outcome), uint64_t{240} << 20) << outcome.errors;
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("features in memory"));
}

// Few nodes may have many edges: their pages are given back by entries, not by nodes.
TEST_F(Memory, EdgesOfFewNodesStayWithinTheBudget) {
  ASSERT_EQ(run({"generate", "g", "--nodes", "20000", "--edges", "6000000", "--features", "4", "--quiet"}).exit_code,
            0);
  ASSERT_EQ(run({"train", "g", "--run", "r", "--recipe", "none", "--layers", "2", "--hidden", "4", "--partitioner",
                 "random", "--parts", "50", "--epochs", "1", "--quiet"})
                .exit_code,
            0);
  Outcome outcome;
  EXPECT_LT(peak_of({"evaluate", "r", "--memory", "60M", "--threads", "2"}, outcome), uint64_t{60} << 20);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
}

TEST_F(Memory, ARefusalNamesABudgetThatWorks) {
  ASSERT_EQ(run({"generate", "g", "--features", "300", "--nodes", "20000", "--quiet"}).exit_code, 0);
  const auto arguments = [](const std::string& run, const std::string& memory) {
    return std::vector<std::string>{"train", "g",        "--run", run,        "--parts", "40",        "--epochs",
                                    "1",     "--memory", memory,  "--hidden", "64",      "--threads", "2"};
  };
  const auto works = [&](const std::string& run, uint64_t budget) {
    Outcome enough;
    EXPECT_LE(peak_of(arguments(run, fmt::format("{}M", budget)), enough), budget << 20);
    EXPECT_EQ(enough.exit_code, 0) << enough.errors;
  };
  const uint64_t least = least_named(refused(arguments("a", "1M")));  // of all stages, the partition's too
  EXPECT_FALSE(fs::exists(folder_ / "a"));                            // nothing is left of what could not begin
  EXPECT_FALSE(fs::exists(folder_ / "g" / "partitions"));
  works("b", least);
  // What exists needs no room to be made. What is resident at the start differs by a MiB from run to run.
  const uint64_t training = least_named(refused(arguments("c", "1M")));
  EXPECT_LE(training, least + 2);
  works("c", training);
  EXPECT_THAT(refused({"evaluate", "b", "--memory", "20M"}), HasSubstr("M or more"));
  EXPECT_THAT(refused({"partition", "g", "--memory", "20M", "--parts", "7"}), HasSubstr("M or more"));
}

// With A·X there and without, with scaled features and without.
TEST_F(Memory, PredictAndEvaluateNameABudgetThatWorks) {
  ASSERT_EQ(run({"generate", "g", "--features", "200", "--nodes", "40000", "--quiet"}).exit_code, 0);
  for (const char* scaling : {"", "--standardise", "--normalise-rows"}) {
    const std::string model = fmt::format("run{}", scaling);
    std::vector<std::string> arguments = {"train",   "g",         "--run", model,          "--parts",
                                          "40",      "--epochs",  "1",     "--hidden",     "64",
                                          "--quiet", "--threads", "2",     "--eval-every", "1"};
    if (*scaling != 0) arguments.push_back(scaling);
    ASSERT_EQ(run(arguments).exit_code, 0);
    for (const bool kept : {true, false}) {
      if (!kept) fs::remove_all(folder_ / "g" / "cache");
      for (const std::vector<std::string>& command :
           {std::vector<std::string>{"predict", model, "--output", "p.npy"}, {"evaluate", model, "--json"}}) {
        const auto with = [&](const std::string& memory) {
          std::vector<std::string> all = command;
          all.insert(all.end(), {"--threads", "2", "--memory", memory});
          return all;
        };
        const uint64_t least = least_named(refused(with("20M")));
        Outcome enough;
        EXPECT_LE(peak_of(with(fmt::format("{}M", least)), enough), least << 20) << command[0] << " " << model;
        EXPECT_EQ(enough.exit_code, 0) << enough.errors;
      }
    }
  }
}

// The scaled copies of an evaluation stay in memory while training keeps the edges there as well.
TEST_F(Memory, TrainingOnScaledFeaturesStaysWithinTheBudget) {
  ASSERT_EQ(run({"generate", "g", "--nodes", "20000", "--edges", "5000000", "--features", "400", "--quiet"}).exit_code,
            0);
  for (const char* scaling : {"--standardise", "--normalise-rows"}) {
    const auto arguments = [&](const std::string& memory) {
      return std::vector<std::string>{"train",          "g",        "--run",    scaling + 2,    "--parts",  "100",
                                      "--partitioner",  "random",   "--hidden", "16",           "--layers", "2",
                                      "--transductive", "--epochs", "2",        "--eval-every", "1",        scaling,
                                      "--threads",      "2",        "--memory", memory};
    };
    const uint64_t least = least_named(refused(arguments("60M")));
    Outcome outcome;
    EXPECT_LE(peak_of(arguments(fmt::format("{}M", least)), outcome), least << 20) << scaling << outcome.errors;
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
}

// Smoothing is in the first budget that is named.
TEST_F(Memory, SmoothingNamesABudgetThatWorks) {
  ASSERT_EQ(
      run({"generate", "g", "--features", "8", "--nodes", "300000", "--edges", "300000", "--classes", "2", "--quiet"})
          .exit_code,
      0);
  ASSERT_EQ(run({"train", "g", "--run", "r", "--parts", "100", "--partitioner", "random", "--layers", "2", "--hidden",
                 "8", "--epochs", "1", "--quiet"})
                .exit_code,
            0);
  const auto evaluate = [](const std::string& memory) {
    return std::vector<std::string>{"evaluate", "r", "--smooth", "labels", "--threads", "2", "--memory", memory};
  };
  const uint64_t least = least_named(refused(evaluate("20M")));
  Outcome enough;
  EXPECT_LE(peak_of(evaluate(fmt::format("{}M", least)), enough), least << 20);
  EXPECT_EQ(enough.exit_code, 0) << enough.errors;
}

// Of a few nodes among many: only what the file lists is looked for, and ids that were read are given back.
TEST_F(Memory, AListOfNodesTakesTheMemoryOfTheListAlone) {
  generate("small", {"--features", "4"});
  ASSERT_EQ(run(train("small", "r", {}, 1)).exit_code, 0);
  constexpr NodeId kNodes = 3'000'000;
  Dataset many;
  many.name = "many";
  EdgeList edges;
  edges.add(0, 1);
  many.graph = build_graph(kNodes, edges, {}, nullptr);
  many.features = FeatureMatrix::dense(std::vector<float>(size_t{kNodes} * 4, 1.0f), 4);
  const auto predict = [&](const std::string& store) {
    return std::vector<std::string>{"predict", "r", store, "--nodes", "ids", "--output", "p.csv", "--memory", "130M"};
  };
  for (const bool range : {true, false}) {
    if (!range) {
      std::vector<int64_t> ids(kNodes);
      std::iota(ids.begin(), ids.end(), 1'000'000'000);
      many.ids = NodeIds::integers(std::move(ids));
    }
    const std::string store = range ? "range" : "integers";
    write_store(folder_ / store, many, StagedDirectory::Existing::kRefuse);
    write_file_atomically(folder_ / "ids", range ? "2999999\n7\n" : "1002999999\n1000000007\n");
    Outcome outcome;
    EXPECT_LT(peak_of(predict(store), outcome), uint64_t{130} << 20) << store;
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(read_text_file(folder_ / "p.csv"), HasSubstr(range ? "\n2999999," : "\n1002999999,"));
    write_file_atomically(folder_ / "ids", range ? "7\n07\n" : "1000000007\n7\n");  // as the graph writes them
    EXPECT_THAT(refused(predict(store)),
                HasSubstr(range ? "ids:2: the graph has no node '07'" : "ids:2: the graph has"));
  }
}

TEST_F(Memory, BlocksAreMadeAndEvaluatedWithinTheBudget) {
  generate_large();
  const auto arguments = [](const std::string& run, const std::string& memory) {
    std::vector<std::string> all = train_large(run, memory);
    all.insert(all.end(), {"--evaluation", "blocks", "--evaluation-blocks", "40"});
    return all;
  };
  EXPECT_THAT(refused(arguments("refused", "100M")), HasSubstr("M or more"));
  const uint64_t budget = 200;
  Outcome tight, whole;
  EXPECT_LT(peak_of(arguments("tight", fmt::format("{}M", budget)), tight), budget << 20) << tight.errors;
  ASSERT_EQ(tight.exit_code, 0) << tight.errors;
  EXPECT_THAT(tight.errors, HasSubstr("evaluation in blocks"));
  EXPECT_GT(peak_of(arguments("whole", "auto"), whole), budget << 20);
  EXPECT_EQ(weights("tight"), weights("whole"));
}

TEST_F(Memory, StepsThatOutgrowTheBudgetEndWithTheOneTheyTook) {
  ASSERT_EQ(run({"generate", "g", "--features", "50", "--nodes", "20000", "--quiet"}).exit_code, 0);
  const auto arguments = [](const std::string& memory, const std::string& method = "sgd") {
    return std::vector<std::string>{"train",         "g",    "--run",     method, "--method", method,
                                    "--epochs",      "1",    "--hidden",  "256",  "--layers", "3",
                                    "--batch-nodes", "4000", "--threads", "2",    "--memory", memory};
  };
  EXPECT_THAT(run(arguments("auto", "full-batch")).errors, testing::Not(HasSubstr("not known ahead")));
  const uint64_t planned = least_named(refused(arguments("1M")));
  const Outcome outgrown = run(arguments(fmt::format("{}M", planned)));
  EXPECT_EQ(outgrown.exit_code, 1);
  EXPECT_THAT(outgrown.errors, testing::AllOf(HasSubstr("not known ahead"), HasSubstr("the steps of epoch 1")));
  const uint64_t taken = least_named(outgrown.errors);
  EXPECT_GT(taken, planned);
  EXPECT_EQ(run({"train", "--run", "sgd", "--resume", "--memory", fmt::format("{}M", taken + 100)}).exit_code, 0);
}

// What the program says of itself is the kernel's count; from outside, what this process had before it became the
// program would count, too.
TEST_F(Memory, AnImportStaysUnderTheBudget) {
  {
    std::ofstream edges(folder_ / "edges.csv");
    Random random(1, Purpose::kTest);
    for (int i = 0; i < 8'000'000; ++i) edges << random.below(50'000) << ',' << random.below(50'000) << '\n';
  }
  const auto import = [&](const std::string& store, const std::string& memory) {
    const Outcome outcome = run({"import", "edges.csv", store, "--json", "--threads", "2", "--memory", memory});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return nlohmann::json::parse(outcome.output);
  };
  const uint64_t budget = 115;
  const auto whole = import("whole", "auto"), tight = import("tight", fmt::format("{}M", budget));
  EXPECT_LT(tight.at("peak_memory").get<uint64_t>(), budget << 20);
  EXPECT_LT(tight.at("peak_memory").get<uint64_t>(), whole.at("peak_memory").get<uint64_t>() - (uint64_t{5} << 20));
  EXPECT_EQ(tight.at("content_hash"), whole.at("content_hash"));
}

// All edges are the same two nodes': a row cannot be cut, so that the list of edges has to make room for it.
TEST_F(Memory, AnImportNamesABudgetThatWorks) {
  {
    std::ofstream edges(folder_ / "few.csv");
    for (int i = 0; i < 1000; ++i) edges << i << ',' << i + 1 << '\n';
  }
  const auto few = [](const std::string& memory) {
    return std::vector<std::string>{"import", "few.csv", "f", "--quiet", "--memory", memory};
  };
  const uint64_t of_few = least_named(refused(few("1M")));  // less than the program itself takes
  EXPECT_EQ(run(few(fmt::format("{}M", of_few))).exit_code, 0);
  {
    std::ofstream edges(folder_ / "edges.csv");
    for (int i = 0; i < 16'000'000; ++i) edges << "1,2\n";
  }
  const auto arguments = [](const std::string& memory) {
    return std::vector<std::string>{"import", "edges.csv", "g", "--json", "--threads", "2", "--memory", memory};
  };
  const uint64_t least = least_named(refused(arguments("60M")));
  const Outcome enough = run(arguments(fmt::format("{}M", least)));
  ASSERT_EQ(enough.exit_code, 0) << enough.errors;
  EXPECT_LE(nlohmann::json::parse(enough.output).at("peak_memory").get<uint64_t>(), least << 20);
}

// Nothing of a graph may be read beyond its end, or taken for what it was, when it changes under a running training.
TEST_F(Memory, AStoreThatChangesUnderTrainingIsNoticed) {
  generate_large();
  const auto partition = [&] { return fs::directory_iterator(folder_ / "g" / "partitions")->path(); };
  for (const bool cut : {false, true}) {
    const std::string name = cut ? "cut" : "changed";
    const pid_t child = start(train_large(name, "140M", 1000));
    while (!fs::exists(folder_ / name / "metrics.jsonl") || fs::file_size(folder_ / name / "metrics.jsonl") == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const fs::path file = partition() / "features.npy";
    if (cut)
      fs::resize_file(file, fs::file_size(file) / 2);
    else
      std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(5000).write("changed", 7);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, testing::AllOf(HasSubstr("features.npy"), HasSubstr("changed or cut short")));
    // The next start finds the damage before it trains on it.
    EXPECT_THAT(refused({"train", "--resume", "--run", name}), HasSubstr("--force makes it again"));
    ASSERT_EQ(run({"partition", "g", "--parts", "200", "--force", "--quiet"}).exit_code, 0);
  }
}

// A hidden layer is wider than what a narrow last layer takes of it: its rows are spilled if they do not fit.
TEST_F(Memory, EmbeddingsOfAHiddenLayerStayWithinTheirBudget) {
  ASSERT_EQ(run({"generate", "g", "--nodes", "100000", "--classes", "3", "--features", "8", "--quiet"}).exit_code, 0);
  ASSERT_EQ(run({"train", "g", "--run", "r", "--recipe", "none", "--layers", "2", "--hidden", "256", "--epochs", "1",
                 "--partitioner", "random", "--parts", "100", "--quiet"})
                .exit_code,
            0);
  const auto predict = [](const std::string& memory, const std::string& file) {
    return std::vector<std::string>{"predict", "r",         "--what", "embeddings", "--layer", "1",      "--output",
                                    file,      "--threads", "2",      "--memory",   memory,    "--quiet"};
  };
  Outcome outcome;
  EXPECT_LT(peak_of(predict("90M", "little.npy"), outcome), 90u << 20);  // all rows take 98 MiB
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  ASSERT_EQ(run(predict("1G", "plenty.npy")).exit_code, 0);
  EXPECT_EQ(read_text_file(folder_ / "little.npy"), read_text_file(folder_ / "plenty.npy"));
}

// Slabs of spilled rows in the order of clusters, with a copy of the edges; then the ranking of 200 labels, which takes
// all that is left.
TEST_F(Memory, AnEvaluationInTheOrderOfClustersStaysWithinItsBudget) {
  ASSERT_EQ(run({"generate", "g", "--nodes", "70000", "--edges", "8000000", "--features", "8", "--classes", "200",
                 "--multi-label", "--split", "5/5/90", "--quiet"})
                .exit_code,
            0);
  ASSERT_EQ(run({"train", "g", "--run", "r", "--recipe", "none", "--layers", "3", "--hidden", "256", "--epochs", "1",
                 "--partitioner", "random", "--parts", "100", "--quiet"})
                .exit_code,
            0);
  const auto evaluate = [](const std::string& memory) {
    return std::vector<std::string>{"evaluate", "r", "--json", "--memory", memory, "--threads", "2"};
  };
  Outcome outcome;
  EXPECT_LT(peak_of(evaluate("190M"), outcome), uint64_t{190} << 20);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(nlohmann::json::parse(outcome.output).at("test"),
            nlohmann::json::parse(run(evaluate("1G")).output).at("test"));
}

// A limit on the size of files stands for a full disk: every write beyond it fails.
TEST_F(Memory, AFullDiskIsNamedAndLeavesNothing) {
  ASSERT_EQ(run({"generate", "g", "--features", "100", "--nodes", "20000", "--quiet"}).exit_code, 0);
  ASSERT_EQ(
      run({"train", "g", "--run", "r", "--parts", "20", "--epochs", "1", "--layers", "3", "--hidden", "160"}).exit_code,
      0);
  const auto limited = [&](const std::string& blocks, const std::string& arguments) {
    const std::string command = fmt::format("cd '{}' && ulimit -f {} && trap '' XFSZ && TMPDIR=. '{}' {} 2> errors",
                                            folder_.path().string(), blocks, CGCN_PROGRAM, arguments);
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
    return read_text_file(folder_ / "errors");
  };
  const std::string least =
      fmt::format("{}M", least_named(refused({"evaluate", "r", "--memory", "20M", "--threads", "2"})) + 3);
  EXPECT_THAT(limited("1000", "evaluate r --threads 2 --memory " + least),
              testing::AllOf(HasSubstr("cannot write the temporary file of embeddings"), HasSubstr("TMPDIR")));
  EXPECT_THAT(limited("1000", "partition g --parts 30"), HasSubstr("cannot write"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "g" / "partitions"), {}), 1);  // the one that was there
  EXPECT_EQ(run({"partition", "g", "--parts", "30", "--quiet"}).exit_code, 0);
}

// A plan comes before what it plans: a refusal takes no more than the budget.
TEST_F(Memory, WhatDoesNotFitIsRefusedBeforeItIsAllocated) {
  ASSERT_EQ(run({"generate", "g", "--nodes", "2000", "--quiet"}).exit_code, 0);
  Outcome refusal;
  const auto peak_refused = [&](std::vector<std::string> arguments) {
    const uint64_t peak = peak_of(std::move(arguments), refusal);
    EXPECT_EQ(refusal.exit_code, 1);
    EXPECT_THAT(refusal.errors, HasSubstr("M or more"));
    return peak >> 20;
  };
  EXPECT_LT(peak_refused({"train", "g", "--run", "r", "--hidden", "8192", "--memory", "300M"}), 300u);
  EXPECT_LT(peak_refused({"train", "g", "--run", "r", "--method", "sgd", "--hidden", "8192", "--memory", "300M"}),
            300u);
  EXPECT_FALSE(fs::exists(folder_ / "r"));
  // The weights fit; a step's workspace does not.
  EXPECT_LT(peak_refused({"train", "g", "--run", "r", "--hidden", "1024", "--layers", "3", "--parts", "1", "--memory",
                          "150M", "--threads", "2"}),
            150u);

  Dataset wide;
  EdgeList edges;
  for (NodeId v = 0; v < 12; ++v) edges.add(v, (v + 1) % 12);
  wide.name = "wide";
  wide.graph = build_graph(12, edges, {}, nullptr);
  std::vector<EdgeOffset> offsets(13);
  std::iota(offsets.begin(), offsets.end(), 0);
  std::vector<uint32_t> columns(12);
  for (uint32_t v = 0; v < 12; ++v) columns[v] = v * 40'000'000;
  wide.features = FeatureMatrix::sparse(std::move(offsets), std::move(columns), std::vector<float>(12, 1), 500'000'000);
  wide.labels = Labels::single(std::vector<int32_t>(12, 0), 2);
  wide.split = std::vector<uint8_t>(12, 0);
  write_store(folder_ / "wide", wide, StagedDirectory::Existing::kRefuse);
  EXPECT_LT(peak_refused({"train", "wide", "--run", "r", "--hidden", "4", "--layers", "2", "--memory", "500M"}), 500u);
  Outcome partitioned;  // A·X of so wide a matrix is made in the budget
  EXPECT_LT(peak_of({"partition", "wide", "--parts", "1", "--memory", "200M"}, partitioned), uint64_t{200} << 20);
  EXPECT_EQ(partitioned.exit_code, 0) << partitioned.errors;
}

TEST_F(Memory, ALargeTextInASmallFileIsImportedWithinTheBudget) {
  {  // 12 million edges, 50 MB of text, in 60 KB
    const gzFile file = gzopen((folder_ / "edges.csv.gz").c_str(), "wb");
    std::string lines;
    for (int i = 0; i < 1000; ++i) lines += fmt::format("{},{}\n", i % 10, i % 7);
    for (int i = 0; i < 12'000; ++i) gzwrite(file, lines.data(), static_cast<unsigned>(lines.size()));
    gzclose(file);
  }
  const Outcome outcome = run({"import", "edges.csv.gz", "g", "--json", "--threads", "2", "--memory", "90M"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_LT(nlohmann::json::parse(outcome.output).at("peak_memory").get<uint64_t>(), uint64_t{90} << 20);
  const Outcome whole = run({"import", "edges.csv.gz", "whole", "--json"});
  EXPECT_EQ(nlohmann::json::parse(outcome.output).at("content_hash"),
            nlohmann::json::parse(whole.output).at("content_hash"));
}

}  // namespace
}  // namespace cgcn
