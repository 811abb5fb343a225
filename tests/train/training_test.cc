// Training on a small generated graph: repeatable, resumable, and refusing what it must.
#include "train/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "graph/npy.h"
#include "train/predictor.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

using kernels::Precision;
using test::TrainingTest;

constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kBFloat16};

TEST_F(TrainingTest, LearnsMoreThanTheLargestClass) {
  options_.train.epochs = 15;
  const TrainingSummary summary = train(make_store(), "run");
  EXPECT_GT(summary.evaluation->test.scores().micro_f1, 0.6);
  EXPECT_EQ(summary.epochs, 15u);
  EXPECT_EQ(read_metrics(folder_ / "run" / "metrics.jsonl").size(), 15u);
}

TEST_F(TrainingTest, ThreadsDoNotChangeABit) {
  for (const Precision precision : kPrecisions)
    for (const bool standardise : {false, true}) {
      options_.model.precision = precision;
      options_.train.standardise = standardise;
      const std::string suffix = fmt::format("{}-{}", kernels::bytes_of(precision), standardise);
      set_thread_count(1);
      train(make_store(), "one-" + suffix);
      set_thread_count(3);
      train(make_store(), "three-" + suffix);
      const RunFiles one(folder_ / ("one-" + suffix)), three(folder_ / ("three-" + suffix));
      EXPECT_EQ(weights(one.last()), weights(three.last()));
      EXPECT_EQ(weights(one.best()), weights(three.best()));
    }
}

class PrecisionTest : public TrainingTest, public testing::WithParamInterface<Precision> {
 protected:
  PrecisionTest() { options_.model.precision = GetParam(); }
};

TEST_P(PrecisionTest, AnInterruptedRunContinuesBitForBit) {
  const Store store(make_store());
  train(store.path(), "whole");
  // Stops after every single step, the first one included.
  { Training made(store, options_, RunDirectory::create(folder_ / "pieces", "test")); }
  for (bool done = false; !done;) {
    Training training(store, options_, RunDirectory::reopen(folder_ / "pieces"));
    const bool steps_left =
        training.state().epoch < 3 && training.state().batch < training.input().batches->batches_per_epoch();
    if (steps_left) request_interrupt();
    try {
      training.run([](const EpochRecord& record) {
        if (record.epoch < 3) request_interrupt();
        return true;
      });
      done = true;
    } catch (const Interrupted& stop) {
      EXPECT_THAT(stop.what(), testing::HasSubstr("--resume"));
    }
    clear_interrupt();
  }
  EXPECT_EQ(weights(RunFiles(folder_ / "whole").last()), weights(RunFiles(folder_ / "pieces").last()));
  EXPECT_EQ(weights(RunFiles(folder_ / "whole").best()), weights(RunFiles(folder_ / "pieces").best()));
  const auto whole = read_metrics(folder_ / "whole" / "metrics.jsonl"),
             pieces = read_metrics(folder_ / "pieces" / "metrics.jsonl");
  ASSERT_EQ(whole.size(), pieces.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i]["loss"], pieces[i]["loss"]);
    EXPECT_EQ(whole[i]["validation"], pieces[i]["validation"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, PrecisionTest, testing::ValuesIn(kPrecisions),
                         [](const auto& info) { return info.param == Precision::kFloat32 ? "Float32" : "BFloat16"; });

// Batches in bfloat16 read a rounded copy of the scaled features, for whose making there is room; an evaluation reads
// the scaled ones.
TEST_F(TrainingTest, OnlyFeaturesThatBatchesReadAreCountedTwiceInBFloat16) {
  options_.train.standardise = true;
  options_.model.precision = Precision::kBFloat16;
  const Store store(make_store());
  const FeatureMatrix& features = store.dataset().features;
  const uint64_t scaled = 2 * features.num_entries() * sizeof(float);
  EXPECT_EQ(scaled_bytes(options_, features, true, Precision::kFloat32), scaled);
  EXPECT_EQ(scaled_bytes(options_, features, true, Precision::kBFloat16), scaled + features.num_entries() * 2);
}

// It learns as float32 does, takes X and A·X at half the size, and is saved in float32.
TEST_F(TrainingTest, TrainsInBFloat16) {
  options_.train.epochs = 15;
  const Store store(make_store());
  options_.model.precision = Precision::kBFloat16;
  Training training(store, options_, RunDirectory::create(folder_ / "half", "test"));
  const PreparedFeatures& features = training.input().features;
  EXPECT_EQ(features.x.kind(), FeatureMatrix::Kind::kDenseBFloat16);
  EXPECT_EQ(features.aggregated.kind(), FeatureMatrix::Kind::kDenseBFloat16);
  const FeatureMatrix exact = aggregated_features(training.input().layout, options_.first_normalisation());
  EXPECT_EQ(2 * features.aggregated.stored_bytes(), exact.stored_bytes());
  std::vector<float> row(exact.columns());
  for (NodeId v = 0; v < exact.rows(); ++v) {
    features.aggregated.copy_row(v, row.data());
    for (size_t c = 0; c < row.size(); ++c) ASSERT_EQ(row[c], to_float(to_bfloat16(exact.dense_row(v)[c])));
    features.x.copy_row(v, row.data());
    const auto x = training.input().layout.data.features.dense_row(v);
    for (size_t c = 0; c < row.size(); ++c) ASSERT_EQ(row[c], to_float(to_bfloat16(x[c])));
  }
  EXPECT_GT(training.run().evaluation->test.scores().micro_f1, 0.6);
  options_.model.precision = Precision::kFloat32;
  train(store.path(), "full");
  EXPECT_NE(weights(RunFiles(folder_ / "half").last()), weights(RunFiles(folder_ / "full").last()));
}

// Every kind of layer and optimiser: its state is in the checkpoint, and evaluation knows it.
TEST_F(TrainingTest, OtherLayersAndOptimisersGoOnBitForBitAndEvaluateExactly) {
  options_.model.input_projection = options_.model.residual = true;
  options_.model.norm_place = NormPlace::kBefore;
  options_.optimiser.kind = OptimiserKind::kAdamW;
  options_.optimiser.weight_decay = 0.01f;
  options_.train.standardise = true;
  const Store store(make_store());
  for (const EvaluationKind kind : {EvaluationKind::kExact, EvaluationKind::kClusters}) {
    options_.train.evaluation = {kind, 2};
    options_.train.epochs = 3;
    const fs::path whole = folder_ / fmt::format("whole-{}", static_cast<int>(kind)),
                   pieces = whole.string() + "-pieces";
    const TrainingSummary summary = Training(store, options_, RunDirectory::create(whole, "test")).run();
    options_.train.epochs = 1;
    Training(store, options_, RunDirectory::create(pieces, "test")).run();
    options_.train.epochs = 3;
    Training(store, options_, RunDirectory::reopen(pieces)).run();
    EXPECT_EQ(weights(RunFiles(whole).last()), weights(RunFiles(pieces).last()));
    EXPECT_EQ(Predictor(whole).evaluate({}).test.scores().micro_f1, summary.evaluation->test.scores().micro_f1);
  }
}

// What goes past layers, and statistics that no gradient moves: threads, resuming and both evaluations.
TEST_F(TrainingTest, BatchNormJumpingAndGcniiGoOnBitForBit) {
  const Store store(make_store());
  for (const bool gcnii : {false, true}) {
    options_.model.batch_norm = !gcnii;
    options_.model.layer_norm = !gcnii;
    options_.model.jumping = gcnii ? Jumping::kNone : Jumping::kConcat;
    options_.model.head = HeadKind::kLinear;
    options_.model.input_projection = gcnii;
    options_.model.initial_residual = gcnii ? 0.1f : 0;
    options_.model.identity_mapping = gcnii ? 0.5f : 0;
    options_.train.batches_per_step = 2;
    options_.train.warmup = 2;
    for (const EvaluationKind kind : {EvaluationKind::kExact, EvaluationKind::kClusters}) {
      options_.train.evaluation = {kind, 2};
      options_.train.epochs = 3;
      const fs::path whole = folder_ / fmt::format("whole-{}-{}", gcnii, static_cast<int>(kind)),
                     pieces = whole.string() + "-pieces";
      set_thread_count(1);
      const TrainingSummary summary = Training(store, options_, RunDirectory::create(whole, "test")).run();
      set_thread_count(3);
      options_.train.epochs = 1;
      Training(store, options_, RunDirectory::create(pieces, "test")).run();
      options_.train.epochs = 3;
      Training(store, options_, RunDirectory::reopen(pieces)).run();
      EXPECT_EQ(weights(RunFiles(whole).last()), weights(RunFiles(pieces).last()));
      EXPECT_EQ(Predictor(whole).evaluate({}).test.scores().micro_f1, summary.evaluation->test.scores().micro_f1);
    }
  }
}

TEST_F(TrainingTest, LearnsWithBatchNormAndWithGcnii) {
  options_.train.epochs = 15;
  options_.model.batch_norm = true;
  options_.model.jumping = Jumping::kConcat;
  EXPECT_GT(train(make_store(), "batch-norm").evaluation->test.scores().micro_f1, 0.6);
  options_.model.batch_norm = options_.model.layer_norm = false;
  options_.model.jumping = Jumping::kNone;
  options_.model.head = HeadKind::kLinear;
  options_.model.input_projection = true;
  options_.model.initial_residual = 0.1f;
  options_.model.identity_mapping = 0.5f;
  options_.train.epochs = 40;  // two more layers to fit
  EXPECT_GT(train(make_store(), "gcnii").evaluation->test.scores().micro_f1, 0.5);
}

TEST_F(TrainingTest, WhatCannotBeCombinedIsRefused) {
  options_.model.initial_residual = 0.1f;
  EXPECT_THAT(test::message_of<Error>([&] { train(make_store(), "run"); }), testing::HasSubstr("--input-projection"));
  options_.model.initial_residual = 0;
  options_.model.jumping = Jumping::kMax;
  options_.model.norm_place = NormPlace::kBefore;
  EXPECT_THAT(test::message_of<Error>([&] { train(make_store(), "run"); }), testing::HasSubstr("--norm-place before"));
}

TEST_F(TrainingTest, VrGcnHasNoInputProjection) {
  options_.method.method = Method::kVrGcn;
  options_.model.input_projection = true;
  EXPECT_THAT(test::message_of<Error>([&] { train(make_store(), "run"); }), testing::HasSubstr("--input-projection"));
}

// Times and memory of a run that was stopped are those of all its sessions.
TEST_F(TrainingTest, FiguresGoOnAfterAStop) {
  options_.model.layers = 2;
  const Store store(make_store());
  const auto touched = [] { return Buffer<char>(size_t{128} << 20, 1); };
  const fs::path run = folder_ / "run";
  {
    const Buffer<char> held = touched();
    Training training(store, options_, RunDirectory::create(run, "test"));
    request_interrupt();
    EXPECT_THROW(training.run(), Interrupted);
    clear_interrupt();
  }
  const TrainingState stopped = load_model(RunFiles(run).last()).state;
  EXPECT_GT(stopped.epoch_waited, 0);
  EXPECT_GT(stopped.training_peak, size_t{128} << 20);
  ASSERT_FALSE(stopped.stages.empty());
  Buffer<char> after;
  const TrainingSummary summary =
      Training(store, options_, RunDirectory::reopen(run)).run([&](const EpochRecord& record) {
        if (record.epoch == 1) {
          EXPECT_GT(record.batch_seconds, stopped.epoch_waited);
          after = Buffer<char>(size_t{512} << 20, 1);
        }
        return true;
      });
  EXPECT_GE(summary.training_peak, stopped.training_peak);  // the largest of the sessions
  EXPECT_GT(summary.peak_memory, summary.training_peak + (size_t{256} << 20));
  EXPECT_EQ(summary.stages.list().front().first, stopped.stages.front().first);
  EXPECT_GT(summary.stages.list().front().second, stopped.stages.front().second);
}

TEST_F(TrainingTest, MemoryBeforeTheFirstStepIsNotTrainings) {
  const Store store(make_store());
  { const Buffer<char> given_back(size_t{512} << 20, 1); }
  if (memory_figures().peak_rss < size_t{512} << 20) GTEST_SKIP() << "the kernel does not tell the peak";
  const TrainingSummary summary = train(store.path(), "run");
  EXPECT_GT(summary.training_peak, 0u);
  EXPECT_LT(summary.training_peak + (size_t{256} << 20), summary.peak_memory);
}

// An embedding of the whole graph is used once for each edge of its node.
TEST_F(TrainingTest, UtilisationIsLinksAnEmbedding) {
  options_.method.method = Method::kFullBatch;
  const Store store(make_store());
  Training training(store, options_, RunDirectory::create(folder_ / "run", "test"));
  const CsrGraph& graph = training.input().layout.data.graph;
  EXPECT_DOUBLE_EQ(training.run().work.utilisation(),
                   static_cast<double>(graph.num_entries()) / static_cast<double>(graph.num_nodes()));
}

// The features turn into NaN on disk after the second epoch, which the run sees through its mapping.
TEST_F(TrainingTest, NotANumberKeepsTheBestModelAndNamesTheStep) {
  options_.train.epochs = 5;
  const Store store(make_store());
  const fs::path best = RunFiles(folder_ / "run").best();
  const auto spoil_features = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(store.path() / "partitions")) {
      if (entry.path().filename() != "features.npy") continue;
      const auto written = entry.last_write_time();  // put back: a file that was written to is named instead
      std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(kNpyHeaderBytes));
      const float nan = std::numeric_limits<float>::quiet_NaN();
      for (uint64_t i = kNpyHeaderBytes; i < entry.file_size(); i += sizeof nan)
        file.write(reinterpret_cast<const char*>(&nan), sizeof nan);
      file.close();
      fs::last_write_time(entry.path(), written);
    }
  };
  Training training(store, options_, RunDirectory::create(folder_ / "run", "test"));
  const std::string message = test::message_of<Error>([&] {
    training.run([&](const EpochRecord& record) {
      if (record.epoch != 2) return true;
      EXPECT_FALSE(fs::exists(best));  // it is saved because the run fails
      spoil_features();
      return true;
    });
  });
  EXPECT_THAT(message, testing::AllOf(testing::HasSubstr("became NaN in epoch 3, step 1"), testing::HasSubstr("--lr")));
  const SavedModel saved = load_model(best);
  EXPECT_GE(saved.state.standing.best_epoch, 1u);
  for (const float weight : saved.model->values()) ASSERT_TRUE(std::isfinite(weight));
  EXPECT_EQ(read_metrics(folder_ / "run" / "metrics.jsonl").size(), 2u);
}

TEST_F(TrainingTest, ClippingScalesTheGradientDown) {
  const fs::path store = make_store();
  const Store opened(store);
  { Training made(opened, options_, RunDirectory::create(folder_ / "initial", "test")); }
  const std::vector<float> initial = weights(RunFiles(folder_ / "initial").last());
  const auto trained = [&](double clip, const std::string& run) {
    options_.train.clip = clip;
    train(store, run);
    return weights(RunFiles(folder_ / run).last());
  };
  const auto largest_change = [&](const std::vector<float>& now) {
    float largest = 0;
    for (size_t i = 0; i < now.size(); ++i) largest = std::max(largest, std::abs(now[i] - initial[i]));
    return largest;
  };
  const std::vector<float> free = trained(0, "free");
  EXPECT_EQ(trained(1e9, "loose"), free);
  // Far below Adam's ε, a step is next to nothing.
  EXPECT_LT(largest_change(trained(1e-12, "tight")), 1e-2 * largest_change(free));
}

TEST_F(TrainingTest, OfEqualScoresTheOneOfTheSmallestLossIsKept) {
  options_.train.epochs = 8;
  options_.train.learning_rate = 1e-5;  // so small that no prediction changes, but the loss does
  const TrainingSummary summary = train(make_store(), "run");
  double score = -1, smallest = 0;
  uint32_t first = 0, expected = 0;
  for (const auto& record : read_metrics(folder_ / "run" / "metrics.jsonl")) {
    const double f1 = record["validation"]["micro_f1"], loss = record["validation"]["loss"];
    if (f1 > score) first = record["epoch"];
    if (f1 > score || (f1 == score && loss < smallest)) {
      score = f1;
      smallest = loss;
      expected = record["epoch"];
    }
  }
  ASSERT_NE(expected, first);  // the best score came again, with a smaller loss
  EXPECT_EQ(summary.kept_epoch, expected);
}

TEST_F(TrainingTest, StopsWhenPatienceIsOut) {
  options_.train.epochs = 50;
  options_.train.patience = 3;
  options_.train.learning_rate = 0;  // nothing gets better than after the first epoch
  const TrainingSummary summary = train(make_store(), "run");
  EXPECT_TRUE(summary.stopped_early);
  EXPECT_EQ(summary.epochs, 4u);
  EXPECT_EQ(summary.kept_epoch, 1u);
  EXPECT_EQ(read_metrics(folder_ / "run" / "metrics.jsonl").size(), 4u);
}

TEST_F(TrainingTest, SchedulesAreFollowed) {
  const fs::path store = make_store();
  options_.train.epochs = 2;
  train(store, "two");
  options_.train.epochs = 4;
  options_.train.schedule = LearningRateSchedule::kStep;
  options_.train.step_epochs = 2;
  options_.train.step_factor = 0;
  train(store, "step");  // two epochs, and two more at a rate of 0
  EXPECT_EQ(weights(RunFiles(folder_ / "step").last()), weights(RunFiles(folder_ / "two").last()));
  options_.train.step_factor = 0.5;
  train(store, "half");
  EXPECT_NE(weights(RunFiles(folder_ / "half").last()), weights(RunFiles(folder_ / "two").last()));
  options_.train.schedule = LearningRateSchedule::kCosine;
  train(store, "cosine");
  const auto metrics = read_metrics(folder_ / "cosine" / "metrics.jsonl");
  ASSERT_EQ(metrics.size(), 4u);
  for (uint32_t epoch = 0; epoch < 4; ++epoch)
    EXPECT_EQ(metrics[epoch]["lr"].get<double>(), options_.train.learning_rate_at(epoch));
  options_.train.schedule = LearningRateSchedule::kConstant;
  train(store, "constant");
  EXPECT_NE(weights(RunFiles(folder_ / "cosine").last()), weights(RunFiles(folder_ / "constant").last()));
}

}  // namespace
}  // namespace cgcn
