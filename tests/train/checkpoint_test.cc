// Checkpoints that are damaged, of another version, not finite or edited; runs that are resumed with other options.
#include "train/checkpoint.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "train/run_records.h"
#include "train/safetensors.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CheckpointTest : public test::TrainingTest {
 protected:
  CheckpointTest() {
    options_.model.layers = 2;
    options_.model.hidden = 4;
    options_.train.epochs = 2;
    set_thread_count(1);
  }
  fs::path optimiser_of(const std::string& run) {
    return folder_ / run / load_model(RunFiles(folder_ / run).last()).optimiser_file;
  }
  // Resumes the run, from the options as they are now.
  TrainingSummary resume(const std::string& run) {
    const Store store(make_store());
    return Training(store, options_, RunDirectory::reopen(folder_ / run)).run();
  }
  std::string resume_refused(const std::string& run) {
    return test::message_of<Error>([&] { resume(run); });
  }
  // The same file with metadata or values that `change` made others of; checksums are made again where they are kept.
  using Arrays = std::map<std::string, std::vector<float>>;
  static void rewrite(const fs::path& path,
                      const std::function<void(std::map<std::string, std::string>&, Arrays&)>& change,
                      bool keeps_checksums = true) {
    std::optional<SafetensorsFile> file(path);
    auto metadata = file->metadata();
    Arrays arrays;
    std::map<std::string, std::vector<uint64_t>> shapes, others;
    for (const std::string& name : file->names()) {
      shapes[name] = file->shape(name);
      if (name == "steps") {
        others[name] = {file->values<uint64_t>(name)[0]};
        continue;
      }
      const auto values = file->values<float>(name);
      arrays[name] = {values.begin(), values.end()};
    }
    file.reset();
    metadata.erase(kChecksumsKey);
    change(metadata, arrays);
    SafetensorsWriter writer;
    for (const auto& [name, values] : arrays) writer.add<float>(name, shapes[name], values);
    for (const auto& [name, values] : others) writer.add<uint64_t>(name, shapes[name], values);
    writer.set_metadata(metadata);
    writer.write(path);
    if (keeps_checksums) return;
    std::string bytes = read_text_file(path);
    bytes.replace(bytes.find(kChecksumsKey), 9, "something");
    write_file_atomically(path, bytes);
  }
  static void set_version(std::map<std::string, std::string>& metadata, int version) {
    auto description = nlohmann::json::parse(metadata.at("clustergcn"));
    description["version"] = version;
    if (version == 3) {  // which had no regular standing
      auto& state = description["state"];
      state.update(nlohmann::json(state["standing"]));
      state.erase("standing");
      state.erase("regular");
    }
    metadata["clustergcn"] = description.dump();
  }
};

TEST_F(CheckpointTest, EveryDamagedBitOfWeightsAndMomentsIsRefused) {
  train(make_store(), "run");
  const fs::path run = folder_ / "run", optimiser = optimiser_of("run");
  const SavedModel saved = load_model(RunFiles(run).last());
  Model model(saved.options.model, saved.shape, 1);
  const std::unique_ptr<Optimiser> fresh = make_optimiser(saved.options.optimiser, model);
  const auto read = [&](const fs::path& file) {
    if (file == optimiser)
      load_optimiser(run, saved, model, *fresh, nullptr);
    else
      load_model(file);
  };
  for (const fs::path& file : {RunFiles(run).last(), RunFiles(run).best(), optimiser}) {
    const std::string whole = read_text_file(file);
    EXPECT_NO_THROW(read(file));
    Random random(9, Purpose::kTest);
    for (int round = 0; round < 400; ++round) {
      const size_t at = random.below(static_cast<uint32_t>(whole.size()));
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      write_file_atomically(file, bytes);
      EXPECT_THROW(read(file), Error) << file << " byte " << at << " of " << whole.size();
    }
    write_file_atomically(file, whole);
  }
}

TEST_F(CheckpointTest, DamageIsNamed) {
  train(make_store(), "run");
  const fs::path file = RunFiles(folder_ / "run").best();
  std::string bytes = read_text_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(file, bytes);
  EXPECT_THAT(test::message_of<Error>([&] { load_model(file); }),
              AllOf(HasSubstr("'layer2.weight' does not match its checksum"), HasSubstr("best.safetensors"),
                    HasSubstr("hint: restore it")));
}

TEST_F(CheckpointTest, OtherVersionsAreRefusedAndVersionThreeIsRead) {
  train(make_store(), "run");
  const fs::path file = RunFiles(folder_ / "run").last();
  const std::vector<float> expected = weights(file);
  rewrite(file, [](auto& metadata, Arrays&) { set_version(metadata, 2); });
  EXPECT_THAT(test::message_of<Error>([&] { load_model(file); }),
              HasSubstr("is of version 2, this program reads version 4"));
  rewrite(
      file, [](auto& metadata, Arrays&) { set_version(metadata, 4); }, /*keeps_checksums=*/false);
  EXPECT_THAT(test::message_of<Error>([&] { load_model(file); }), HasSubstr("has no checksums"));
}

TEST_F(CheckpointTest, AVersionWithoutChecksumsIsReadWithANote) {
  train(make_store(), "run");
  const fs::path file = RunFiles(folder_ / "run").last();
  const SavedModel before = load_model(file);
  rewrite(
      file, [](auto& metadata, Arrays&) { set_version(metadata, 3); }, /*keeps_checksums=*/false);
  log::set_level(log::Level::kNormal);
  testing::internal::CaptureStderr();
  const SavedModel after = load_model(file);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("last.safetensors: has no checksums"));
  EXPECT_THAT(after.model->values(), testing::ElementsAreArray(before.model->values()));
  EXPECT_EQ(after.state.standing.best_epoch, before.state.standing.best_epoch);
  EXPECT_EQ(after.state.regular.best_score, before.state.standing.best_score);
}

TEST_F(CheckpointTest, AModelThatAnotherProgramWroteAgainIsReadWithANote) {
  train(make_store(), "run");
  const fs::path file = RunFiles(folder_ / "run").last();
  const SavedModel before = load_model(file);
  const std::string bytes = read_text_file(file);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  auto header = nlohmann::ordered_json::parse(bytes.substr(8, length));
  const auto write = [&] {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t size = text.size();
    write_file_atomically(file, std::string(reinterpret_cast<const char*>(&size), 8) + text + bytes.substr(8 + length));
  };
  header["__metadata__"].erase(kChecksumsKey);
  write();
  log::set_level(log::Level::kNormal);
  testing::internal::CaptureStderr();
  const SavedModel after = load_model(file);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("last.safetensors: has no checksums"));
  EXPECT_THAT(after.model->values(), testing::ElementsAreArray(before.model->values()));
  header["__metadata__"]["checksumr"] = "{}";  // of ours, with a damaged name
  write();
  EXPECT_THAT(test::message_of<Error>([&] { load_model(file); }), HasSubstr("has no checksums: the file is damaged"));
}

TEST_F(CheckpointTest, AModelOfOneLayerHasABiasAndOneOfBeforeIsReadWithout) {
  options_.model.layers = 1;
  train(make_store(), "run");
  const fs::path file = RunFiles(folder_ / "run").last();
  const SavedModel before = load_model(file);
  const auto bias_of = [](const SavedModel& saved) {
    for (const Parameter& parameter : saved.model->parameters())
      if (parameter.name == "layer1.bias") return saved.model->values().subspan(parameter.offset, parameter.size());
    return std::span<const float>();
  };
  ASSERT_EQ(bias_of(before).size(), before.shape.num_classes);
  EXPECT_TRUE(std::any_of(bias_of(before).begin(), bias_of(before).end(), [](float b) { return b != 0; }));  // learnt
  rewrite(file, [](auto&, Arrays& arrays) { arrays.erase("layer1.bias"); });
  const SavedModel after = load_model(file);
  EXPECT_THAT(bias_of(after), testing::Each(0.0f));
  rewrite(file, [](auto&, Arrays& arrays) { arrays.erase("layer1.weight"); });
  EXPECT_THROW(load_model(file), Error);
}

// A checkpoint is a file that someone may have sent: what it declares is compared with what it holds, right checksums
// or not.
TEST_F(CheckpointTest, AWordOfItsDescriptionAllocatesNothing) {
  train(make_store(), "run");
  const fs::path file = RunFiles(folder_ / "run").last();
  rewrite(file, [](auto& metadata, Arrays&) {
    auto description = nlohmann::json::parse(metadata.at("clustergcn"));
    description["shape"]["num_classes"] = 100'000'000;
    metadata["clustergcn"] = description.dump();
  });
  const uint64_t before = memory_figures().peak_rss;
  EXPECT_THAT(test::message_of<Error>([&] { load_model(file); }), HasSubstr("has the shape"));
  EXPECT_LT(memory_figures().peak_rss - before, uint64_t{200} << 20);
}

TEST_F(CheckpointTest, WhatIsNotFiniteIsRefusedByName) {
  train(make_store(), "run");
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  rewrite(RunFiles(folder_ / "run").best(), [&](auto&, Arrays& arrays) { arrays["layer1.weight"][3] = nan; });
  EXPECT_THAT(test::message_of<Error>([&] { load_model(RunFiles(folder_ / "run").best()); }),
              AllOf(HasSubstr("'layer1.weight'"), HasSubstr("not a number")));
  for (const char* moment : {"layer2.weight.mean", "layer1.weight.square"}) {
    const fs::path optimiser = optimiser_of("run");
    const std::string whole = read_text_file(optimiser);
    rewrite(optimiser, [&](auto&, Arrays& arrays) { arrays[moment][0] = infinity; });
    EXPECT_THAT(resume_refused("run"), AllOf(HasSubstr(moment), HasSubstr("infinite")));
    write_file_atomically(optimiser, whole);
  }
}

TEST_F(CheckpointTest, MomentsOfAnotherStepAreRefused) {
  train(make_store(), "run");
  options_.train.epochs = 1;
  train(make_store(), "other");
  options_.train.epochs = 2;
  const fs::path optimiser = optimiser_of("run");
  fs::copy_file(optimiser_of("other"), optimiser, fs::copy_options::overwrite_existing);
  EXPECT_THAT(resume_refused("run"), HasSubstr("is of step 2, and the checkpoint that names it is of step 4"));
}

TEST_F(CheckpointTest, ResumedWithOtherOptionsTheDifferenceIsNamed) {
  train(make_store(), "run");
  const RunOptions original = options_;
  const auto refused = [&](auto&& edit, const std::string& what) {
    options_ = original;
    edit(options_);
    EXPECT_THAT(resume_refused("run"), AllOf(HasSubstr(what), HasSubstr("config.toml")));
    options_ = original;
  };
  refused([](RunOptions& o) { o.train.learning_rate = 0.02; }, "lr is 0.02, but the checkpoint was trained with 0.01");
  refused([](RunOptions& o) { o.train.seed = 5; }, "seed is 5, but the checkpoint was trained with 1");
  refused([](RunOptions& o) { o.model.dropout = 0.5f; }, "dropout is 0.5, but the checkpoint was trained with 0.2");
  refused([](RunOptions& o) { o.model.residual = true; },
          "residual is true, but the checkpoint was trained with false");
  refused([](RunOptions& o) { o.model.hidden = 60000; }, "hidden is 60000, but the checkpoint was trained with 4");
  options_.train.epochs = 3;
  options_.train.patience = 7;
  options_.train.checkpoint_seconds = 5;
  options_.train.eval_every = 2;
  EXPECT_NO_THROW(resume("run"));
}

// Resumed with more epochs a run ends as if it had been so long from the start, whatever its schedule, its patience and
// the epochs that it validates.
TEST_F(CheckpointTest, MoreEpochsAreAsIfFromTheStart) {
  const fs::path store = make_store();
  for (const LearningRateSchedule schedule : {LearningRateSchedule::kConstant, LearningRateSchedule::kStep}) {
    for (const uint32_t patience : {0u, 2u}) {
      const std::string name = fmt::format("{}-{}", static_cast<int>(schedule), patience);
      options_.train.schedule = schedule;
      options_.train.step_epochs = 3;
      options_.train.patience = patience;
      options_.train.eval_every = 5;
      options_.train.learning_rate = 0.3;  // so that later is not always better
      for (const uint32_t first : {4u, 7u}) {
        const std::string run = fmt::format("{}-{}", name, first);
        options_.train.epochs = first;
        train(store, run);
        options_.train.epochs = 17;
        const TrainingSummary resumed = resume(run);
        if (!fs::exists(folder_ / name)) train(store, name);
        EXPECT_EQ(weights(RunFiles(folder_ / run).last()), weights(RunFiles(folder_ / name).last())) << run;
        EXPECT_EQ(weights(RunFiles(folder_ / run).best()), weights(RunFiles(folder_ / name).best())) << run;
        const TrainingState a = load_model(RunFiles(folder_ / run).last()).state,
                            b = load_model(RunFiles(folder_ / name).last()).state;
        EXPECT_EQ(nlohmann::json(a.standing), nlohmann::json(b.standing)) << run;
        EXPECT_EQ(a.epoch, b.epoch);
      }
    }
  }
}

// The last epoch, validated out of turn, is the best: tested as such, and forgotten when the run is resumed.
TEST_F(CheckpointTest, AValidationOutOfTurnIsForgottenByALongerRun) {
  options_.train.eval_every = 2;
  options_.train.epochs = 3;
  const TrainingSummary summary = train(make_store(), "run");
  ASSERT_EQ(summary.kept_epoch, 3u) << "epoch 3 is not better than epoch 2: this shows nothing";
  EXPECT_EQ(load_model(RunFiles(folder_ / "run").regular_best()).state.standing.best_epoch, 2u);
  EXPECT_EQ(resume("run").kept_epoch, 3u);  // not longer
  options_.train.epochs = 4;
  const Store store(make_store());
  {
    const Training training(store, options_, RunDirectory::reopen(folder_ / "run"));
    EXPECT_EQ(training.state().standing.best_epoch, 2u);
    EXPECT_EQ(load_model(RunFiles(folder_ / "run").best()).state.standing.best_epoch, 2u);
  }
  EXPECT_FALSE(fs::exists(RunFiles(folder_ / "run").regular_best()));
}

// The best model is a file of its own, which last.safetensors and the moments do not vouch for.
TEST_F(CheckpointTest, ARunWhoseBestModelIsDamagedOrLostIsNotContinued) {
  train(make_store(), "run");
  options_.train.epochs = 1;
  train(make_store(), "other");
  options_.train.epochs = 4;
  const RunFiles files(folder_ / "run");
  const std::string whole = read_text_file(files.best()), config = read_text_file(files.config()),
                    metrics = read_text_file(files.metrics());
  std::string bytes = whole;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(files.best(), bytes);
  EXPECT_THAT(resume_refused("run"), AllOf(HasSubstr("best.safetensors"), HasSubstr("does not match its checksum")));
  fs::copy_file(RunFiles(folder_ / "other").best(), files.best(), fs::copy_options::overwrite_existing);
  EXPECT_THAT(resume_refused("run"), AllOf(HasSubstr("best.safetensors: is not the model of epoch 2, the best so far"),
                                           HasSubstr("--keep last")));
  fs::remove(files.best());
  EXPECT_THAT(resume_refused("run"), HasSubstr("best.safetensors: is missing: the model of epoch 2, the best so far"));
  EXPECT_THAT(test::message_of<Error>([&] { kept_checkpoint(folder_ / "run"); }),
              AllOf(HasSubstr("best.safetensors: is missing: the model of epoch 2"), HasSubstr("last.safetensors")));
  EXPECT_EQ(read_text_file(files.config()), config);
  EXPECT_EQ(read_text_file(files.metrics()), metrics);
  write_file_atomically(files.best(), whole);
  EXPECT_EQ(resume("run").epochs, 4u);
  options_.train.keep = KeptModel::kLast;
  write_file_atomically(files.best(), bytes);
  options_.train.epochs = 5;
  EXPECT_EQ(resume("run").kept_epoch, 5u);
  fs::remove(files.best());
  options_.train.epochs = 6;
  EXPECT_EQ(resume("run").kept_epoch, 6u);
}

TEST_F(CheckpointTest, ABestModelThatIsReplacedWhileTheRunTrainsIsRefused) {
  train(make_store(), "other");
  const Store store(make_store());
  options_.train.epochs = 3;
  options_.train.checkpoint_seconds = 0;
  Training training(store, options_, RunDirectory::create(folder_ / "run", "test"));
  const fs::path best = RunFiles(folder_ / "run").best();
  const auto replace = [&](const EpochRecord& record) {
    if (record.epoch == 3)
      fs::copy_file(RunFiles(folder_ / "other").best(), best, fs::copy_options::overwrite_existing);
    return true;
  };
  EXPECT_THAT(test::message_of<Error>([&] { training.run(replace); }), HasSubstr("is no longer the model of epoch 3"));
}

// Killed when a new best model was written, and last.safetensors, which speaks of the one before, was not.
TEST_F(CheckpointTest, TheBestModelIsThatOfTheLastCheckpoint) {
  options_.train.epochs = 1;
  train(make_store(), "run");
  const RunFiles files(folder_ / "run");
  fs::copy(files.folder(), folder_ / "before");
  options_.train.epochs = 2;
  ASSERT_EQ(resume("run").kept_epoch, 2u) << "epoch 2 is not better than epoch 1: this shows nothing";
  EXPECT_FALSE(fs::exists(files.former_best()));
  fs::copy(RunFiles(folder_ / "before").best(), files.former_best());
  for (const fs::path& file : {RunFiles(folder_ / "before").last(), optimiser_of("before")})
    fs::copy_file(file, files.folder() / file.filename(), fs::copy_options::overwrite_existing);
  const Store store(make_store());
  const Training training(store, options_, RunDirectory::reopen(files.folder()));
  EXPECT_EQ(training.state().standing.best_epoch, 1u);
  EXPECT_EQ(load_model(files.best()).state.standing.best_epoch, 1u);
  EXPECT_FALSE(fs::exists(files.former_best()));
}

// A directory in the place of the new moments stands for the kill between the two.
TEST_F(CheckpointTest, TheFormerBestModelIsKeptUntilTheCheckpointIsWritten) {
  options_.train.epochs = 1;
  options_.train.checkpoint_seconds = 0;
  train(make_store(), "run");
  const RunFiles files(folder_ / "run");
  options_.train.epochs = 2;
  const Store store(make_store());
  Training training(store, options_, RunDirectory::reopen(files.folder()));
  fs::create_directory(files.optimiser(training.state().step * 2));
  EXPECT_THROW(training.run(), Error);
  EXPECT_EQ(load_model(files.best()).state.standing.best_epoch, 2u);
  EXPECT_EQ(load_model(files.former_best()).state.standing.best_epoch, 1u);
  EXPECT_EQ(load_model(files.last()).state.standing.best_epoch, 1u);
}

// New files are written beside those that they replace.
TEST_F(CheckpointTest, TakeWhatWasPlanned) {
  for (const Method method : {Method::kCluster, Method::kVrGcn}) {
    options_.method.method = method;
    options_.model.hidden = 64;
    const std::string run = method == Method::kVrGcn ? "history" : "clusters";
    const fs::path store = make_store();
    train(store, run);
    const Dataset data = open_dataset(store);
    const RunFiles files(folder_ / run);
    const uint64_t taken =
        2 * (fs::file_size(files.last()) + fs::file_size(optimiser_of(run))) + 3 * fs::file_size(files.best());
    const Model model = Model::planned(options_.model, shape_of(data));
    const uint64_t planned = RunCheckpoints::planned_bytes(options_, model, data.num_nodes());
    constexpr uint64_t kDescriptions = 100'000;
    EXPECT_LE(taken, planned + kDescriptions) << run;
    EXPECT_GT(planned, 2 * kDescriptions) << run;
    EXPECT_GT(planned_run_bytes(options_, data), planned);
  }
}

TEST_F(CheckpointTest, CosineKeepsItsEpochs) {
  options_.train.schedule = LearningRateSchedule::kCosine;
  train(make_store(), "run");
  options_.train.epochs = 4;
  EXPECT_THAT(resume_refused("run"), HasSubstr("epochs is 4, but the checkpoint was trained with 2"));
}

}  // namespace
}  // namespace cgcn
