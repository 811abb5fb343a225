// What a run keeps, refuses and continues from.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <fstream>

#include "program.h"

namespace cgcn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Runs : public test::ProgramTest {
 protected:
  std::map<std::string, std::string> files_of(const std::string& run) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ / run))
      if (entry.path().filename() != "lock") files[entry.path().filename().string()] = read_text_file(entry.path());
    return files;
  }
  // Edges of a ring, and classes of these names by turns.
  void import_named(const std::string& store, const std::vector<std::string>& classes) {
    fs::create_directories(folder_ / (store + "-source"));
    std::ofstream edges(folder_ / (store + "-source") / "edges.csv"),
        labels(folder_ / (store + "-source") / "labels.csv"), features(folder_ / (store + "-source") / "features.csv");
    labels << "id,label\n";
    for (size_t v = 0; v < 60; ++v) {
      edges << v << ',' << (v + 1) % 60 << '\n';
      labels << v << ',' << classes[v % classes.size()] << '\n';
      features << v % 3 << ',' << v % 5 << '\n';
    }
    edges.close();
    labels.close();
    features.close();
    ASSERT_EQ(run({"import", store + "-source", store, "--split", "60/20/20", "--quiet"}).exit_code, 0);
  }
};

TEST_F(Runs, KeepLastIsWhatEvaluateAndPredictTake) {
  generate("g");
  const Outcome trained = run(train("g", "r", {"--keep", "last", "--lr", "0.2", "--json"}, 12));
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  ASSERT_NE(weights("r"), weights("r", "best.safetensors")) << "the best model is the last: this shows nothing";
  const auto scores = [&](const std::string& what) {
    return nlohmann::json::parse(run({"evaluate", what, "--json"}).output)["test"];
  };
  EXPECT_EQ(scores("r"), scores("r/last.safetensors"));
  EXPECT_NE(scores("r"), scores("r/best.safetensors"));
  EXPECT_EQ(scores("r")["loss"], nlohmann::json::parse(trained.output)["test"]["loss"]);
  const auto probabilities = [&](const std::string& what) {
    return run({"predict", what, "--what", "probabilities"}).output;
  };
  EXPECT_EQ(probabilities("r"), probabilities("r/last.safetensors"));
  EXPECT_NE(probabilities("r"), probabilities("r/best.safetensors"));
}

TEST_F(Runs, ClassesOfOtherNamesAreRefused) {
  import_named("colours", {"red", "green", "blue"});
  import_named("others", {"red", "green", "black"});
  import_named("same", {"blue", "red", "green"});
  ASSERT_EQ(run(train("colours", "r")).exit_code, 0);
  EXPECT_EQ(run({"evaluate", "r", "same"}).exit_code, 0);
  EXPECT_THAT(refused({"evaluate", "r", "others"}), AllOf(HasSubstr("others"), HasSubstr("other names")));
  import_named("two", {"red", "green"});
  EXPECT_THAT(refused({"evaluate", "r", "two"}), AllOf(HasSubstr("has 2 classes"), HasSubstr("--like")));
  import_named("numbers", {"0", "1", "2"});
  EXPECT_THAT(run({"evaluate", "r", "numbers"}).errors,
              AllOf(HasSubstr("classes are matched by number"), HasSubstr("numbers have no names")));
}

TEST_F(Runs, NumbersThatCannotCountAreNamed) {
  generate("g");
  EXPECT_THAT(refused(train("g", "r", {"--method", "graphsage", "--fanout", "4,5,6", "--layers", "3"})),
              HasSubstr("--fanout: has 3 numbers, but 2 of the 3 layers sample neighbours"));
  EXPECT_THAT(run(train("g", "r", {"--method", "graphsage", "--fanout", "4,5", "--layers", "3"}, 1)).exit_code, 0);
  EXPECT_THAT(run({"train", "g", "--run", "s", "--parts", "4", "--per-batch", "9", "--epochs", "1"}).errors,
              HasSubstr("--per-batch 9: there are 4 clusters, and every batch has all of them"));
}

TEST_F(Runs, ARefusedResumeLeavesTheRunAsItWas) {
  generate("g");
  generate("other", {"--seed", "2"});
  ASSERT_EQ(run(train("g", "r", {"--partition-name", "mine"})).exit_code, 0);
  const auto before = files_of("r");
  refused({"train", "--run", "r", "--resume", "--hidden", "32"});
  refused({"train", "other", "--run", "r", "--resume", "--epochs", "8"});
  refused({"train", "--run", "r", "--resume", "--epochs", "0"});
  ASSERT_EQ(run({"partition", "g", "--parts", "5", "--partition-name", "mine", "--force", "--quiet"}).exit_code, 0);
  EXPECT_THAT(refused({"train", "--run", "r", "--resume", "--epochs", "8"}),
              AllOf(HasSubstr("partitions/mine"), HasSubstr("other options")));
  EXPECT_EQ(files_of("r"), before);
}

TEST_F(Runs, AChangedPartitionIsRefusedByName) {
  generate("g");
  const auto write_clusters = [&](uint32_t parts) {
    std::ofstream file(folder_ / "clusters.txt");
    for (uint32_t v = 0; v < 600; ++v) file << v % parts << '\n';
  };
  write_clusters(3);
  const std::vector<std::string> partition = {"partition",        "g",    "--from",  "clusters.txt",
                                              "--partition-name", "mine", "--force", "--quiet"};
  ASSERT_EQ(run({"train", "g", "--run", "r", "--hidden", "8", "--epochs", "2", "--from", "clusters.txt",
                 "--partition-name", "mine"})
                .exit_code,
            0);
  write_clusters(4);
  EXPECT_THAT(refused({"train", "--run", "r", "--resume", "--epochs", "3"}),
              AllOf(HasSubstr("partitions/mine"), HasSubstr("was made with other options")));
  ASSERT_EQ(run(partition).exit_code, 0);
  EXPECT_THAT(refused({"train", "--run", "r", "--resume", "--epochs", "3"}),
              AllOf(HasSubstr("partitions/mine"), HasSubstr("the partition has changed since this run began")));
  // --parts given with a file is compared with it, whether the partition is new or there already.
  EXPECT_THAT(refused({"partition", "g", "--from", "clusters.txt", "--partition-name", "mine", "--parts", "3"}),
              AllOf(HasSubstr("clusters.txt"), HasSubstr("4 clusters, not the 3")));
}

TEST_F(Runs, OptionsOfOtherMethodsAreNamed) {
  generate("g");
  const Outcome outcome =
      run({"train", "g", "--run", "r", "--hidden", "8", "--epochs", "1", "--method", "sgd", "--fanout", "3", "--parts",
           "7", "--draw", "independent", "--batch-nodes", "99", "--transductive"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const size_t at = outcome.errors.find("note: no effect: ");
  ASSERT_NE(at, std::string::npos) << outcome.errors;
  const std::string note = outcome.errors.substr(at, outcome.errors.find('\n', at) - at);
  EXPECT_THAT(note, AllOf(HasSubstr("--fanout 3 (another --method takes it)"),
                          HasSubstr("--parts 7 (this --method has no clusters)"), HasSubstr("--draw independent")));
  EXPECT_THAT(note, testing::Not(testing::AnyOf(HasSubstr("--batch-nodes"), HasSubstr("--transductive"))));
  EXPECT_THAT(run({"train", "g", "--run", "c", "--hidden", "8", "--epochs", "1", "--parts", "7"}).errors,
              testing::Not(HasSubstr("no effect")));
  EXPECT_THAT(run({"train", "g", "--run", "d", "--hidden", "8", "--epochs", "1", "--lambda", "2", "--step-epochs", "5",
                   "--evaluation-blocks", "3"})
                  .errors,
              HasSubstr("note: no effect: --lambda 2 (only self+diagonal takes it), --step-epochs 5 (only --schedule "
                        "step takes it), --evaluation-blocks 3 (--evaluation exact)"));
  EXPECT_THAT(run({"evaluate", "r", "--evaluation-blocks", "3"}).errors,
              HasSubstr("note: no effect: --evaluation-blocks 3 (--evaluation exact)"));
  EXPECT_THAT(run({"partition", "g", "--partitioner", "random", "--parts", "3", "--imbalance", "1.2"}).errors,
              HasSubstr("note: no effect: --imbalance 1.2 (another partitioner takes it)"));
}

// Also if only the result is printed: on stderr, and in the JSON.
TEST_F(Runs, NotesAreThereForQuietAndJson) {
  generate("g");
  const auto arguments = [&](const char* run, const char* form) {
    return train("g", run, {"--layers", "2", "--residual", "--dense-adam", form}, 1);
  };
  const std::string expected =
      "--residual (only hidden layers whose input is as wide as their output have it, and there are none)";
  const Outcome quiet = run(arguments("q", "--quiet"));
  EXPECT_THAT(quiet.errors, AllOf(HasSubstr(expected), HasSubstr("--dense-adam (the features are dense)")));
  const Outcome json = run(arguments("j", "--json"));
  ASSERT_EQ(json.exit_code, 0) << json.errors;
  EXPECT_EQ(nlohmann::json::parse(json.output).at("notes"),
            nlohmann::json({expected, "--dense-adam (the features are dense)"}));
  EXPECT_EQ(nlohmann::json::parse(run({"evaluate", "q", "--json"}).output).at("notes"), nlohmann::json::array());
}

// Training that stops, its files edited, and what is said of it.
TEST_F(Runs, AnEditedConfigurationIsRefusedByItsValue) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  const std::string config = read_text_file(folder_ / "r" / "config.toml");
  const auto edit = [&](const std::string& from, const std::string& to) {
    std::string text = config;
    const size_t at = text.find("\n" + from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file_atomically(folder_ / "r" / "config.toml", text.replace(at + 1, from.size(), to));
  };
  for (const auto& [from, to, what] : std::vector<std::array<std::string, 3>>{
           {"lr = 0.01", "lr = 0.02", "lr is 0.02, but the checkpoint was trained with 0.01"},
           {"seed = 1", "seed = 2", "seed is 2, but the checkpoint was trained with 1"},
           {"dropout = 0.2", "dropout = 0.3", "dropout is 0.3, but the checkpoint was trained with 0.2"},
           {"residual = false", "residual = true", "residual is true, but the checkpoint was trained with false"}}) {
    edit(from, to);
    EXPECT_THAT(refused({"train", "--run", "r", "--resume", "--epochs", "8"}),
                AllOf(HasSubstr("r/config.toml: " + what), HasSubstr("set it back to")));
  }
  edit("epochs = 6", "epochs = 7");
  EXPECT_EQ(run({"train", "--run", "r", "--resume"}).exit_code, 0);
}

TEST_F(Runs, WhatWouldTakeMinutesIsRefusedOrSaid) {
  generate("g");
  EXPECT_THAT(
      refused(train("g", "r", {"--evaluation", "blocks", "--evaluation-blocks", "200"})),
      AllOf(HasSubstr("--evaluation-blocks: 200 blocks of 600 nodes have fewer than 4"), HasSubstr("150 or fewer")));
  const Outcome outcome = run(train("g", "s", {"--method", "vrgcn", "--fanout", "0", "--batch-nodes", "5"}, 1));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("of 360 nodes: an epoch computes"));
  EXPECT_THAT(run(train("g", "c", {}, 1)).errors, testing::Not(HasSubstr("an epoch computes")));
}

TEST_F(Runs, CosineRefusesOtherEpochs) {
  generate("g");
  ASSERT_EQ(run(train("g", "r", {"--schedule", "cosine"})).exit_code, 0);
  EXPECT_THAT(refused({"train", "--run", "r", "--resume", "--epochs", "9"}),
              AllOf(HasSubstr("--epochs: was 6 and cannot change"), HasSubstr("cosine")));
}

TEST_F(Runs, WhatFailsBeforeItsFirstStepLeavesThePlaceFree) {
  generate("g");
  const int busy = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(busy, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(busy, 1), 0);
  ASSERT_EQ(::getsockname(busy, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  EXPECT_THAT(refused(train("g", "r", {"--live", "--live-port", port})), HasSubstr("in use"));
  EXPECT_FALSE(fs::exists(folder_ / "r"));
  EXPECT_FALSE(fs::exists(folder_ / "g" / "partitions"));  // nothing was done in vain
  ::close(busy);
  EXPECT_THAT(refused(train("g", "r", {"--lr", "0.01", "--clip", "1e-45", "--standardise", "--normalise-rows"})),
              HasSubstr("cannot both be scaled"));
  EXPECT_FALSE(fs::exists(folder_ / "r"));
  EXPECT_EQ(run(train("g", "r")).exit_code, 0);
}

TEST_F(Runs, WhatCannotBeScoredOrShortenedIsSaid) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  EXPECT_THAT(refused({"train", "--run", "r", "--resume", "--epochs", "2"}), HasSubstr("has 6 epochs already"));
  EXPECT_THAT(read_text_file(folder_ / "r" / "config.toml"), HasSubstr("epochs = 6"));
  ASSERT_EQ(run({"generate", "g", "--nodes", "600", "--force", "--seed", "2", "--quiet"}).exit_code, 0);
  EXPECT_THAT(run({"evaluate", "r"}).errors, HasSubstr("has changed since the model was trained"));
  Dataset unsplit = Store(folder_ / "g").dataset();
  unsplit.split = {};
  write_store(folder_ / "unsplit", unsplit, StagedDirectory::Existing::kRefuse);
  EXPECT_THAT(refused({"evaluate", "r", "unsplit", "--json"}), HasSubstr("nothing to score"));
  EXPECT_THAT(refused({"train", "--run", "none", "--resume"}), HasSubstr("none: no such run folder"));
}

TEST_F(Runs, AGraphToScoreNeedsNoTrainingNodes) {
  import_named("colours", {"red", "green", "blue"});
  ASSERT_EQ(run(train("colours", "r")).exit_code, 0);
  ASSERT_EQ(run({"import", "colours-source", "other", "--split", "0/0/100", "--quiet"}).exit_code, 0);
  const Outcome scored = run({"evaluate", "r", "other", "--json"});
  ASSERT_EQ(scored.exit_code, 0) << scored.errors;
  EXPECT_EQ(nlohmann::json::parse(scored.output)["test"]["nodes"], 60);
  EXPECT_THAT(refused({"train", "other"}), HasSubstr("has no training nodes"));
  EXPECT_THAT(run({"import", "colours-source", "none", "--split", "0/0/0"}).errors, HasSubstr("the shares are all 0"));
}

TEST_F(Runs, ImportSaysWhatNamesAndEmptyFilesNeed) {
  import_named("colours", {"red", "green"});
  ASSERT_EQ(run(train("colours", "r")).exit_code, 0);
  ASSERT_EQ(run({"predict", "r", "--what", "probabilities", "--output", "x.npy"}).exit_code, 0);
  write_file_atomically(folder_ / "named.csv", "alice,bob\n");
  EXPECT_THAT(refused({"import", "named.csv", "s", "--features", "x.npy"}),
              AllOf(HasSubstr("'alice' is not a whole number"), HasSubstr("give x as CSV")));
  write_file_atomically(folder_ / "empty.csv", "");
  EXPECT_THAT(run({"import", "empty.csv", "s", "--features", "x.npy"}).errors, HasSubstr("empty.csv: holds no edge"));
}

TEST_F(Runs, ClassNumbersWithGapsAreNamedAtImport) {
  write_file_atomically(folder_ / "edges.csv", "0,1\n1,2\n2,3\n");
  write_file_atomically(folder_ / "labels.csv", "0,5\n1,0\n2,2000\n3,0\n");
  EXPECT_THAT(run({"import", "edges.csv", "s"}).errors, HasSubstr("numbered up to 2,000, and 3 of them occur"));
}

TEST_F(Runs, NamesThatAreNotUtf8AreNoBug) {
  const std::string store = "gr\xe4ph";
  generate(store);
  const Outcome outcome = run(train(store, "r", {"--json"}, 1));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(run({"partition", store, "--json", "--parts", "3"}).exit_code, 0);
  EXPECT_EQ(run({"predict", "r", store, "--json", "--output", "p\xe4.csv"}).exit_code, 0);
}

TEST_F(Runs, ARunStoppedBeforeItsFirstCheckpointContinues) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  const std::vector<float> expected = weights("r");
  for (const auto& [name, text] : files_of("r"))
    if (name.ends_with(".safetensors") || name == "metrics.jsonl") fs::remove(folder_ / "r" / name);
  const Outcome resumed = run({"train", "--run", "r", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(weights("r"), expected);
  fs::remove(folder_ / "r" / "environment.json");
  EXPECT_THAT(refused({"train", "--run", "r", "--resume"}), HasSubstr("does not name its graph store"));
}

TEST_F(Runs, AGivenPartitionIsFoundFromAnotherFolder) {
  generate("g");
  std::ofstream clusters(folder_ / "my clusters.txt");
  for (uint32_t v = 0; v < 600; ++v) clusters << v % 3 << '\n';
  clusters.close();
  ASSERT_EQ(run({"train", "g", "--run", "r", "--hidden", "8", "--epochs", "2", "--from", "my clusters.txt"}).exit_code,
            0);
  fs::create_directories(folder_ / "elsewhere");
  const Outcome resumed = run({"train", "--run", "../r", "--resume", "--epochs", "3"}, "elsewhere");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(run({"train", "--run", "r", "--resume", "--epochs", "4", "--from", "my clusters.txt"}).exit_code, 0);
}

TEST_F(Runs, AMovedStoreIsSaidToBeMoved) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  fs::rename(folder_ / "g", folder_ / "moved");
  for (const char* command : {"evaluate", "predict"})
    EXPECT_THAT(refused({command, "r"}),
                AllOf(HasSubstr("no longer exists"), HasSubstr("give its path after the run")));
  EXPECT_THAT(refused({"train", "--run", "r", "--resume"}),
              AllOf(HasSubstr("no longer exists"), HasSubstr("clustergcn train STORE --run r --resume")));
  EXPECT_EQ(run({"evaluate", "r", "moved"}).exit_code, 0);
  EXPECT_EQ(run({"train", "moved", "--run", "r", "--resume", "--epochs", "7"}).exit_code, 0);
}

TEST_F(Runs, AModelOfNodesKnowsItsOwnGraphOnly) {
  generate("own", {"--identity"});
  generate("other", {"--identity", "--seed", "2"});
  generate("features");
  ASSERT_EQ(run(train("own", "r")).exit_code, 0);
  ASSERT_EQ(run(train("features", "f")).exit_code, 0);
  EXPECT_EQ(run({"evaluate", "r"}).exit_code, 0);
  for (const char* store : {"other", "features"})
    EXPECT_THAT(refused({"predict", "r", store}), AllOf(HasSubstr("a vector for every node"), HasSubstr("own")));
  EXPECT_THAT(refused({"predict", "f", "own"}), HasSubstr("has no features"));
}

TEST_F(Runs, AReportThatCannotBeMadeIsAWarning) {
  generate("g");
  ASSERT_EQ(run(train("g", "r", {}, 1)).exit_code, 0);
  for (const std::string& damage : {std::string(R"({"sizes":[1e308,-1e308]})"), std::string(300000, '[')}) {
    write_file_atomically(folder_ / "r" / "clusters.json", damage);
    const Outcome resumed = run({"train", "--resume", "--run", "r", "--epochs", "2"});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
    EXPECT_THAT(resumed.errors, AllOf(HasSubstr("the report was not written"), HasSubstr("clusters.json")));
    EXPECT_THAT(resumed.output, testing::Not(HasSubstr("Report ")));  // what is there is of the run before
    EXPECT_EQ(run({"report", "r"}).exit_code, 1);
  }
}

TEST_F(Runs, AFullStandardOutputIsAFailure) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  for (const char* command :
       {"info g", "evaluate r", "evaluate r --json", "predict r --what probabilities", "options"}) {
    const int status = std::system(
        fmt::format("cd '{}' && '{}' {} > /dev/full 2> message", folder_.path().string(), CGCN_PROGRAM, command)
            .c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << command;
    EXPECT_THAT(read_text_file(folder_ / "message"), AllOf(HasSubstr("error: "), HasSubstr("No space left")))
        << command;
  }
}

}  // namespace
}  // namespace cgcn
