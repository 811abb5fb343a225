// Nothing that is not the program's own is deleted, overwritten, or printed as it is.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "graph/store.h"
#include "program.h"

namespace cgcn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Safety : public test::ProgramTest {
 protected:
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  // As a shell would run it, with the program as "$1".
  int shell(const std::string& command) const {
    return WEXITSTATUS(std::system(
        fmt::format("cd '{}' && set -- '{}' && {}", folder_.path().string(), CGCN_PROGRAM, command).c_str()));
  }
};

TEST_F(Safety, ForceReplacesStoresOnly) {
  write("p/thesis", "x");
  EXPECT_THAT(refused({"generate", "p", "--nodes", "100", "--force"}), HasSubstr("p: is not a graph store"));
  EXPECT_TRUE(fs::exists(folder_ / "p/thesis"));
  generate("g");
  write("g/thesis", "x");
  EXPECT_THAT(refused({"generate", "g", "--nodes", "100", "--force"}), HasSubstr("g/thesis: is not part"));
  EXPECT_EQ(run({"info", "g"}).exit_code, 0);
  fs::remove(folder_ / "g/thesis");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);  // partitions and A·X are the program's own
  EXPECT_EQ(run({"generate", "g", "--nodes", "100", "--force"}).exit_code, 0);
  write("file", "x");
  EXPECT_THAT(refused({"generate", "file", "--nodes", "100", "--force"}), HasSubstr("file: is not a directory"));
}

TEST_F(Safety, AnImportDoesNotReplaceItsSource) {
  write("src/edges.csv", "0,1\n1,2\n");
  EXPECT_THAT(refused({"import", "src", "src", "--force"}), HasSubstr("src: is what the import reads"));
  fs::create_directory_symlink("src", folder_ / "link");
  EXPECT_THAT(refused({"import", "src/edges.csv", "link", "--force"}), HasSubstr("is what the import reads"));
  EXPECT_TRUE(fs::exists(folder_ / "src/edges.csv"));
  EXPECT_EQ(run({"import", "src", "src/store", "--force"}).exit_code, 0);
}

TEST_F(Safety, AReportReplacesPagesOnlyAndFollowsLinks) {
  generate("g");
  ASSERT_EQ(run(train("g", "r", {}, 1)).exit_code, 0);
  const std::string config = read_text_file(folder_ / "r/config.toml");
  EXPECT_THAT(refused({"report", "r", "-o", "r/config.toml"}), HasSubstr("exists and is not an HTML page"));
  EXPECT_EQ(read_text_file(folder_ / "r/config.toml"), config);
  fs::create_symlink("page.html", folder_ / "link");
  for (int round = 0; round < 2; ++round) ASSERT_EQ(run({"report", "r", "-o", "link"}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "page.html")));
  EXPECT_EQ(run({"report", "r", "-o", "/dev/null"}).exit_code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Safety, PredictionsReplaceNothingThatIsRead) {
  generate("g");
  ASSERT_EQ(run(train("g", "r", {}, 1)).exit_code, 0);
  EXPECT_THAT(refused({"predict", "r", "--output", "g/features.npy"}), HasSubstr("lies in a graph store"));
  EXPECT_NO_THROW(Store{folder_ / "g"});
  write("nodes.csv", "1\n2\n");
  EXPECT_THAT(refused({"predict", "r", "--nodes", "nodes.csv", "--output", "./nodes.csv"}), HasSubstr("--nodes"));
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(run({"predict", "r", "--nodes", "nodes.csv", "--output", "r/p.csv"}).exit_code, 0);
}

// Killed before its folder was a run, or if nothing could be written: the folder is used again.
TEST_F(Safety, AFolderThatDidNotBecomeARunIsUsedAgain) {
  generate("g");
  write("r/lock", "123");
  write("r/environment.json", "{}");
  write("r/" + temporary_sibling("config.toml").string(), "hal");
  EXPECT_THAT(refused({"train", "--run", "r", "--resume"}), HasSubstr("train without --resume"));
  EXPECT_EQ(run(train("g", "r", {}, 1)).exit_code, 0);
  EXPECT_THAT(refused(train("g", "r", {}, 1)), HasSubstr("--resume to continue it"));
  for (const char* fault :
       {"write:ENOSPC:0:config.toml", "rename:EIO:0:config.toml", "open:EROFS:0:environment.json"}) {
    const InjectedFault injected(*this, fault);
    EXPECT_THAT(refused(train("g", "full", {}, 1)), HasSubstr("cannot write"));
    EXPECT_FALSE(fs::exists(folder_ / "full")) << fault;
  }
  EXPECT_EQ(run(train("g", "full", {}, 1)).exit_code, 0);
}

TEST_F(Safety, ARunIsContinuedInRunFoldersOnly) {
  generate("g");
  write("project/config.toml", "lr = 0.5\n");
  write("project/lock", "mine");
  EXPECT_THAT(refused({"train", "g", "--run", "project", "--resume"}), HasSubstr("is not a run folder"));
  EXPECT_THAT(refused({"train", "g", "--run", "project"}), HasSubstr("it is not a run folder"));
  EXPECT_EQ(read_text_file(folder_ / "project/config.toml"), "lr = 0.5\n");
  EXPECT_EQ(read_text_file(folder_ / "project/lock"), "mine");
}

TEST_F(Safety, AKeyOfManyPartsIsRefused) {
  generate("g");
  std::string deep = "a";
  for (int i = 0; i < 40'000; ++i) deep += ".a";
  write("deep.toml", deep + " = 1\n");
  EXPECT_THAT(refused({"train", "g", "--config", "deep.toml"}), HasSubstr("deep.toml: is no configuration"));
  std::string brackets = "hidden = " + std::string(100'000, '[') + std::string(100'000, ']') + "\n";
  write("brackets.toml", brackets);
  EXPECT_THAT(refused({"train", "g", "--config", "brackets.toml"}), HasSubstr("is no configuration"));
  ASSERT_EQ(run(train("g", "r", {}, 1)).exit_code, 0);
  write("r/config.toml", deep + " = 1\n");
  EXPECT_THAT(refused({"report", "r"}), HasSubstr("is no configuration"));
  EXPECT_THAT(refused({"train", "--run", "r", "--resume"}), HasSubstr("is no configuration"));
  write("bounded.toml", deep.substr(0, 2999) + " = 1\n");  // what is let through is not too deep for the parser
  EXPECT_THAT(refused({"train", "g", "--config", "bounded.toml"}), HasSubstr("unknown option 'a'"));
}

TEST_F(Safety, NamesAreNames) {
  write("edges.csv", "0,1\n1,2\n2,3\n3,0\n");
  write("labels.csv", "0,a\n1,b\n2,a\n3,b\n");
  for (const char* name : {"../../x", "/somewhere/x", ".x", "a\nb"})
    EXPECT_THAT(refused({"import", "edges.csv", "g", "--name", name}), HasSubstr("without '/'"));
  // A store that someone else wrote may be called anything.
  Dataset data = [&] {
    EXPECT_EQ(run({"import", "edges.csv", "g", "--labels", "labels.csv", "--split", "50/25/25"}).exit_code, 0);
    return open_dataset(folder_ / "g");
  }();
  data.name = "../../x";
  write_store(folder_ / "odd", data, StagedDirectory::Existing::kRefuse);
  ASSERT_EQ(run({"train", "odd", "--epochs", "1", "--parts", "1"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "runs/_._.._x-1/config.toml") || fs::exists(folder_ / "runs/_.__.__x-1/config.toml"))
      << fs::directory_iterator(folder_ / "runs")->path();
}

TEST_F(Safety, MessagesShowLittleOfAFileAndNoEscapeCodes) {
  write("edges.csv", "0,1\n1,\x1b[2J" + std::string(1'000'000, 'x') + ",3\n");
  write("big.toml", "hidden = \"" + std::string(900'000, 'x') + "\"\n");
  write("key.toml", "\"" + std::string(900'000, 'x') + "\\u001b[2J\" = 1\n");
  generate("g");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"import", "edges.csv", "e"},
                                             {"train", "g", "--config", "big.toml"},
                                             {"train", "g", "--config", "key.toml"},
                                             {"train", "g", "--config", "edges.csv"}}) {
    const std::string errors = refused(command);
    EXPECT_LT(errors.size(), 800u) << command[1];
    EXPECT_LE(std::count(errors.begin(), errors.end(), 'x'), 210);
    EXPECT_THAT(errors, Not(HasSubstr("\x1b")));
  }
}

// Without standard error, its number must not go to a file of the run.
TEST_F(Safety, AClosedStandardErrorWritesIntoNoFile) {
  generate("g");
  EXPECT_EQ(shell("\"$1\" train g --run r --epochs 2 --parts 2 --hidden 8 2>&- >/dev/null"), 0);
  const std::string lock = read_text_file(folder_ / "r/lock");
  EXPECT_EQ(lock.find_first_not_of("0123456789"), std::string::npos) << lock;
  EXPECT_EQ(shell("\"$1\" info g >&- 2>closed"), 1);
  EXPECT_THAT(read_text_file(folder_ / "closed"), HasSubstr("standard output: cannot write"));
}

TEST_F(Safety, AShortWriteIsFinishedAndAFullDiskIsCalledSo) {
  generate("g");
  {
    const InjectedFault fault(*this, "write:short:0:/");
    const Outcome outcome = run(train("g", "short"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
  {
    const InjectedFault fault(*this, "write:full:0:metrics.jsonl");
    const Outcome outcome = run(train("g", "full"));
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("metrics.jsonl: cannot write: No space left"), Not(HasSubstr("Success"))));
  }
  EXPECT_EQ(run({"train", "--run", "full", "--resume"}).exit_code, 0);
  EXPECT_EQ(weights("full"), weights("short"));
}

TEST_F(Safety, AHangUpSavesAndNohupRunsOn) {
  generate("g");
  const auto wait_for_metrics = [&](const std::string& run) {
    const fs::path metrics = folder_ / run / "metrics.jsonl";
    for (int i = 0; i < 3000 && !fs::exists(metrics); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  const pid_t program = start(train("g", "r", {}, 1'000'000));
  wait_for_metrics("r");
  ::kill(program, SIGHUP);
  ::kill(program, SIGHUP);  // as a terminal that closes may send it
  const Outcome outcome = finish(program);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("--resume"));
  EXPECT_GT(load_model(folder_ / "r/last.safetensors").state.epoch, 0u);

  std::signal(SIGHUP, SIG_IGN);  // what nohup does
  const pid_t other = start(train("g", "other", {}, 1'000'000));
  std::signal(SIGHUP, SIG_DFL);
  wait_for_metrics("other");
  ::kill(other, SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(::waitpid(other, nullptr, WNOHANG), 0) << "nohup is not heeded";
  ::kill(other, SIGTERM);
  EXPECT_EQ(finish(other).exit_code, 130);
}

TEST_F(Safety, AStoreThatCannotBeWrittenIsEvaluatedAndPredicted) {
  generate("g");
  ASSERT_EQ(run(train("g", "r")).exit_code, 0);
  const std::string expected = run({"predict", "r", "--what", "probabilities"}).output;
  fs::remove_all(folder_ / "g/cache");
  const InjectedFault fault(*this, "mkdir,open:EROFS:0:/g/");
  const Outcome predicted = run({"predict", "r", "--what", "probabilities"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.errors;
  EXPECT_EQ(predicted.output, expected);
  EXPECT_THAT(predicted.errors, HasSubstr("A·X is not kept"));
  EXPECT_EQ(run({"evaluate", "r"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(folder_ / "g/cache"));
}

TEST_F(Safety, TwoForcedPartitionsAtOnceBothSucceed) {
  ASSERT_EQ(run({"generate", "g", "--nodes", "20000", "--edges", "200000", "--features", "50", "--quiet"}).exit_code,
            0);
  const std::vector<std::string> command = {"partition", "g", "--parts", "20", "--force", "--quiet"};
  for (int round = 0; round < 3; ++round) {
    const pid_t first = start(command), second = start(command);
    const Outcome one = finish(first), other = finish(second);
    EXPECT_EQ(one.exit_code, 0) << one.errors;
    EXPECT_EQ(other.exit_code, 0) << other.errors;
  }
  EXPECT_EQ(run({"partition", "g", "--parts", "20", "--quiet"}).exit_code, 0);
}

// A result says of so many classes only what someone can read.
TEST_F(Safety, MillionsOfClassesMakeNoGigabyte) {
  write("edges.csv", "0,1\n1,2\n2,3\n3,0\n");
  write("labels.csv", "0,0\n1,299999\n2,7\n3,7\n");
  ASSERT_EQ(run({"import", "edges.csv", "g", "--labels", "labels.csv", "--split", "50/25/25"}).exit_code, 0);
  ASSERT_EQ(run({"train", "g", "--run", "r", "--epochs", "1", "--hidden", "1", "--layers", "1"}).exit_code, 0);
  EXPECT_LT(fs::file_size(folder_ / "r/result.json"), 10u << 20);
  const auto result = nlohmann::json::parse(read_text_file(folder_ / "r/result.json"));
  EXPECT_EQ(result.at("train").at("class_count"), 300'000);
  uint64_t nodes = 0;
  for (const char* part : {"train", "validation", "test"})
    for (const auto& entry : result.at(part).at("classes")) nodes += entry.at("nodes").get<uint64_t>();
  EXPECT_EQ(nodes, 4u) << "the classes that occur are listed";
  EXPECT_EQ(run({"report", "r"}).exit_code, 0);
}

}  // namespace
}  // namespace cgcn
