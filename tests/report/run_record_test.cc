// What the page is told of a run: a finished one, one in progress, a stopped one, and damaged ones.
#include "report/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/log.h"
#include "generate/generate.h"
#include "report/figures.h"
#include "report/page.h"
#include "support.h"
#include "train/result.h"
#include "train/training.h"

namespace cgcn {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class RunRecord : public testing::Test {
 protected:
  RunRecord() { log::set_level(log::Level::kQuiet); }
  ~RunRecord() override { log::set_level(log::Level::kNormal); }

  // A small run of three epochs; until_end: with its test.
  fs::path train(const std::string& name, bool until_end = true) {
    GenerateOptions graph;
    graph.nodes = 400;
    if (!fs::exists(folder_ / "graph")) generate_store(folder_ / "graph", graph, StagedDirectory::Existing::kRefuse);
    RunOptions options;
    options.model.layers = 2;
    options.model.hidden = 8;
    options.partition.parts = 5;
    options.train.per_batch = 2;
    options.train.epochs = 3;
    options.train.learning_rate = 0.02;
    const Store store(folder_ / "graph");
    Training training(store, options, RunDirectory::create(folder_ / name, "test"));
    const fs::path run = training.directory().path();
    training.run([&](const EpochRecord&) {
      while_running_ = read_run(run);
      return true;
    });
    if (!until_end) fs::remove(run / "result.json");
    return run;
  }
  void write(const fs::path& file, const std::string& text) { write_file_atomically(file, text); }

  test::TemporaryFolder folder_;
  json while_running_;
};

TEST_F(RunRecord, HasReasonsOfChoices) {
  const fs::path path = train("run");
  EXPECT_FALSE(read_run(path).contains("trials"));
  const fs::path file = RunFiles(path).choices();
  write(file, R"({"choices": [{"option": "hidden", "value": "8", "reason": "narrow"},
                              {"option": "layers", "value": "9", "reason": "overruled"}],
                  "trials": {"text": "two tried"}})");
  const json run = read_run(path);
  EXPECT_EQ(run["trials"], "two tried");
  for (const json& setting : run["settings"])
    EXPECT_EQ(setting.value("reason", ""), setting["name"] == "hidden" ? "narrow" : "");
  write(file, R"({"choices": [{"option": "hidden"}]})");
  EXPECT_THROW(read_run(path), Error);
}

TEST_F(RunRecord, HasWhatTheRunWrote) {
  const fs::path path = train("run");
  const json run = read_run(path);
  const auto metrics = read_metrics(path / "metrics.jsonl");
  EXPECT_EQ(run["state"], "finished");
  EXPECT_EQ(run["name"], "run");
  EXPECT_EQ(run["curves"]["epoch"], json({1, 2, 3}));
  double seconds = 0;
  for (size_t i = 0; i < 3; ++i) {
    seconds += metrics[i]["seconds"].get<double>();
    EXPECT_NEAR(run["curves"]["loss"][i].get<double>(), metrics[i]["loss"].get<double>(), 1e-4);
    EXPECT_NEAR(run["curves"]["f1"][i].get<double>(), metrics[i]["validation"]["micro_f1"].get<double>(), 1e-5);
    EXPECT_NEAR(run["curves"]["seconds"][i].get<double>(), seconds, 1e-4 * seconds);
    EXPECT_GT(run["curves"]["resident"][i].get<uint64_t>(), 1000000u);
    EXPECT_GE(run["curves"]["peak"][i].get<uint64_t>(), run["curves"]["resident"][i].get<uint64_t>());
  }
  // The stages are all of the time.
  double staged = 0;
  for (const json& stage : run["stages"]) staged += stage["seconds"].get<double>();
  EXPECT_NEAR(staged, run["result"]["total_seconds"].get<double>(), 0.05 * staged);
  // Every test node is in the matrix once.
  uint64_t nodes = 0;
  for (const json& row : run["classes"]["confusion"])
    for (const json& cell : row) nodes += cell.get<uint64_t>();
  EXPECT_EQ(nodes, run["result"]["test"]["nodes"].get<uint64_t>());
  EXPECT_FALSE(run["result"]["test"].contains("confusion"));
  // Every entry of the training graph is in the picture once, and every cluster in the histograms.
  uint64_t entries = 0, clusters = 0, entropies = 0;
  for (const json& cell : run["clusters"]["blocks"]["entries"]) entries += cell.get<uint64_t>();
  for (const json& bin : run["clusters"]["sizes"]["counts"]) clusters += bin.get<uint64_t>();
  for (const json& bin : run["clusters"]["label_entropy"]["own"]) entropies += bin.get<uint64_t>();
  EXPECT_EQ(entries, 2 * run["clusters"]["links"].get<uint64_t>());
  EXPECT_EQ(clusters, 5u);
  EXPECT_EQ(entropies, 5u);
}

TEST_F(RunRecord, TellsHowToMakeItAgain) {
  const json run = read_run(train("run"));
  EXPECT_THAT(run["command"].get<std::string>(),
              testing::AllOf(HasSubstr("clustergcn train " + (folder_ / "graph").string()), HasSubstr(" --parts 5"),
                             HasSubstr(" --lr 0.02"), HasSubstr(" --epochs 3"), Not(HasSubstr("--dropout"))));
}

TEST_F(RunRecord, TellsHowToGoOnAsAShellTakesIt) {
  EXPECT_EQ(read_run(train("run"))["resume_command"],
            fmt::format("clustergcn train --run {} --resume", shell_word((folder_ / "run").string())));
  EXPECT_EQ(read_run(train("it's $mine"))["resume_command"],
            fmt::format("clustergcn train --run '{}/it'\\''s $mine' --resume", folder_.path().string()));
}

TEST_F(RunRecord, SaysWhetherItIsGoingOnOrWasStopped) {
  const json stopped = read_run(train("run", false));
  EXPECT_EQ(while_running_["state"], "running");
  EXPECT_EQ(stopped["state"], "stopped");
  EXPECT_FALSE(stopped.contains("classes"));
  EXPECT_EQ(stopped["stages"].size(), 3u);
}

TEST_F(RunRecord, PassesOverALineThatIsBeingWritten) {
  const fs::path path = train("run");
  const std::string metrics = read_text_file(path / "metrics.jsonl");
  write(path / "metrics.jsonl", metrics + R"({"epoch":4,"lo)");
  EXPECT_EQ(read_run(path)["curves"]["epoch"].size(), 3u);
}

TEST_F(RunRecord, TakesNumbersOfAnySize) {
  const fs::path path = train("run");
  write(path / "metrics.jsonl", R"({"epoch":1,"loss":1e-310,"seconds":1e308})"
                                "\n"
                                R"({"epoch":18446744073709551615,"loss":-1.7e308,"seconds":1e308})"
                                "\n");
  const json run = read_run(path);
  EXPECT_EQ(run["curves"]["loss"], json({1e-310, -1.7e308}));
  EXPECT_EQ(run["curves"]["seconds"], json({1e308, nullptr}));
}

TEST_F(RunRecord, RefusesWhatIsNotARun) {
  EXPECT_THAT(test::message_of<Error>([&] { read_run(folder_ / "nothing"); }), HasSubstr("nothing: no such run"));
  EXPECT_THAT(test::message_of<Error>([&] { read_run(folder_.path()); }), HasSubstr("it has no config.toml"));
}

TEST_F(RunRecord, NamesTheDamagedFileAndLine) {
  const fs::path path = train("run");
  const auto damage = [&](const char* file, const std::string& text) {
    const std::string before = read_text_file(path / file);
    write(path / file, text);
    const std::string message = test::message_of<Error>([&] { read_run(path); });
    write(path / file, before);
    return message;
  };
  const std::string metrics = read_text_file(path / "metrics.jsonl");
  EXPECT_THAT(damage("metrics.jsonl", metrics + "{\"epoch\":\n"), HasSubstr("metrics.jsonl:4"));
  EXPECT_THAT(damage("metrics.jsonl", "[]\n" + metrics), HasSubstr("metrics.jsonl:1"));
  EXPECT_THAT(damage("metrics.jsonl", R"({"epoch":1,"loss":"high","seconds":1})"
                                      "\n"),
              HasSubstr("metrics.jsonl:1"));
  for (const char* wrong : {R"("seconds":"1")", R"("seconds":null)", R"("batch_seconds":[1])", R"("validation":7)",
                            R"("memory":"much")", R"("validation_seconds":{})", R"("loss":[])"})
    EXPECT_THAT(damage("metrics.jsonl", metrics + fmt::format("{{\"epoch\":4,{}}}\n", wrong)),
                HasSubstr("metrics.jsonl:4: is not an epoch's record"))
        << wrong;
  const std::string deep = R"({"epoch":)" + std::string(300000, '[') + std::string(300000, ']') + "}";
  EXPECT_THAT(damage("metrics.jsonl", metrics + deep + "\n"), HasSubstr("metrics.jsonl:4"));
  for (const char* file : {"environment.json", "result.json", "clusters.json", "embeddings.json"})
    for (const std::string& text : {std::string("{"), std::string("[]"), deep})
      EXPECT_THAT(damage(file, text), HasSubstr(std::string(file) + ": is not a JSON object")) << text.substr(0, 20);
  EXPECT_THAT(damage("environment.json", R"({"store":7})"), HasSubstr("environment.json: does not hold"));
  EXPECT_THAT(damage("environment.json", R"({"store":{"name":7}})"), HasSubstr("environment.json: does not hold"));
  EXPECT_THAT(damage("result.json", R"({"test":{}})"), HasSubstr("result.json: does not hold"));
  json result = json::parse(read_text_file(path / "result.json"));
  for (const json& wrong : {json(-1), json(1e308), json("many")}) {
    result["test"]["nodes"] = wrong;
    EXPECT_THAT(damage("result.json", result.dump()), HasSubstr("result.json: does not hold")) << wrong;
  }
  json clusters = json::parse(read_text_file(path / "clusters.json"));
  for (const json& wrong : {json::array(), json({1e308, -1e308}), json({1, -1}), json({0.5}), json("many")}) {
    clusters["sizes"] = wrong;
    EXPECT_THAT(damage("clusters.json", clusters.dump()), HasSubstr("clusters.json: does not hold")) << wrong;
  }
  const json embeddings = json::parse(read_text_file(path / "embeddings.json"));
  for (const char* field : {"x", "y", "classes", "class_names", "share", "part", "nodes"}) {
    json wrong = embeddings;
    wrong[field] = json({json::object()});
    EXPECT_THAT(damage("embeddings.json", wrong.dump()), HasSubstr("embeddings.json: does not hold")) << field;
  }
  EXPECT_THAT(damage("config.toml", "parts = = 3\n"), HasSubstr("config.toml"));
  EXPECT_EQ(read_run(path)["state"], "finished");
}

TEST_F(RunRecord, MetricsThatCannotBeReadAreNoEmptyRun) {
  const fs::path path = train("run");
  fs::remove(path / "metrics.jsonl");
  EXPECT_THAT(test::message_of<Error>([&] { read_run(path); }),
              HasSubstr("metrics.jsonl: is missing, though the run has finished"));
  fs::remove(path / "result.json");
  EXPECT_EQ(read_run(path)["curves"]["epoch"].size(), 0u);  // a run before its first epoch has none
  fs::create_directory(path / "metrics.jsonl");
  EXPECT_THAT(test::message_of<Error>([&] { read_run(path); }), HasSubstr("metrics.jsonl: is not a regular file"));
}

TEST_F(RunRecord, RunsOfOneNameAreToldApart) {
  fs::create_directories(folder_ / "other");
  const fs::path first = train("run"), second = train("other/run");
  const json data = read_runs({first, second});
  EXPECT_EQ(data["runs"][0]["name"], first.string());
  EXPECT_EQ(data["runs"][1]["name"], second.string());
}

TEST_F(RunRecord, NamesCannotLeaveThePagesData) {
  const fs::path path = train("<script>alert(1)<");
  const std::string page = make_page(read_runs({path}), false);
  EXPECT_THAT(page, HasSubstr("\\u003cscript>alert(1)"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert(1)")));
  // What stands in the page is the data, whole.
  const std::string opening = "id=\"data\">";
  const size_t begin = page.find(opening) + opening.size(), end = page.find("</script>", begin);
  EXPECT_EQ(json::parse(page.substr(begin, end - begin))["runs"][0]["name"], "<script>alert(1)<");
}

TEST(Page, LoadsNothing) {
  const std::string page = make_page({{"written", ""}, {"runs", json::array()}}, false);
  for (const char* way : {"src=", "<link", "@import", "url("})
    EXPECT_THAT(page.substr(0, page.find("Chart.js v")), Not(HasSubstr(way))) << way;
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy"));
  EXPECT_THAT(page, Not(HasSubstr("/*DATA*/")));
}

TEST(Page, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(to_script_text({{"name", "a\xff</script>"}}), "{\"name\":\"a\xef\xbf\xbd\\u003c/script>\"}");
}

TEST(Figures, HistogramCountsEveryValueOnce) {
  EXPECT_EQ(histogram({0, 0.5, 1, 1.5, 2}, 0, 2, 2), (std::vector<uint64_t>{2, 3}));
}

TEST(Figures, ManyClassesAreTheLargestAndTheRest) {
  constexpr uint64_t kClasses = kShownClasses + 52;
  json part = {{"nodes", 100u}, {"classes", json::array()}, {"confusion", json::array()}};
  for (uint64_t c = 0; c < kClasses; ++c) {
    part["classes"].push_back({{"class", std::to_string(c)}, {"nodes", c}, {"f1", 1.0}});
    part["confusion"].push_back(std::vector<uint64_t>(kClasses, 0));
    part["confusion"][c][c] = c;
  }
  const json figures = class_figures({{"test", part}, {"validation", part}, {"train", part}});
  EXPECT_EQ(figures["list"].size(), kShownClasses);
  EXPECT_EQ(figures["list"][0]["class"], std::to_string(kClasses - 1));
  EXPECT_EQ(figures["confusion"].size(), kShownClasses + 1);
  EXPECT_EQ(figures["confusion"][0][0], kClasses - 1);
  EXPECT_EQ(figures["confusion"][kShownClasses][kShownClasses], 51 * 52 / 2);  // classes 0 … 51
  EXPECT_EQ(figures["total"], kClasses - 1);                                   // class 0 has no nodes
}

TEST(Figures, AClassThatNobodyHasIsNotListed) {
  json part = {{"nodes", 5u},
               {"classes", {{{"class", "a"}, {"nodes", 5u}}, {{"class", "b"}, {"nodes", 0u}}}},
               {"confusion", {{5u, 0u}, {0u, 0u}}}};
  json figures = class_figures({{"test", part}, {"validation", part}, {"train", part}});
  EXPECT_EQ(figures["list"].size(), 1u);
  EXPECT_EQ(figures["confusion"], json({{5}}));
  part["confusion"][0] = {3u, 2u};  // two nodes are taken for it
  figures = class_figures({{"test", part}, {"validation", part}, {"train", part}});
  EXPECT_EQ(figures["confusion"], json({{3, 2}, {0, 0}}));
}

}  // namespace
}  // namespace cgcn
