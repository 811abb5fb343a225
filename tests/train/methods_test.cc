// The compared methods in training: their gradients if nothing is left out, VR-GCN's history, and for each of them
// the same bits for any number of threads and after every stop.
#include "batch/methods.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/threads.h"
#include "generate/generate.h"
#include "method_names.h"
#include "support.h"
#include "train/predictor.h"
#include "train/training.h"

namespace cgcn {
namespace {

class MethodsTest : public testing::TestWithParam<Method> {
 protected:
  MethodsTest() {
    log::set_level(log::Level::kQuiet);
    GenerateOptions generate;
    generate.nodes = 400;
    generate_store(folder_ / "store", generate, StagedDirectory::Existing::kRefuse);
    options_.model.layers = 3;
    options_.model.hidden = 16;
    options_.model.dropout = 0;
    options_.method.method = GetParam();
    options_.method.targets = 50;
    options_.method.fanout = "2,3";
    options_.method.layer_nodes = 40;
    options_.train.epochs = 2;
  }
  ~MethodsTest() override {
    clear_interrupt();
    set_thread_count(0);
    log::set_level(log::Level::kNormal);
  }

  void train(const std::string& run) {
    const Store store(folder_ / "store");
    Training(store, options_, RunDirectory::create(folder_ / run, "test")).run();
  }
  std::vector<float> weights(const std::string& run) {
    const SavedModel saved = load_model(RunFiles(folder_ / run).last());
    return {saved.model->values().begin(), saved.model->values().end()};
  }

  test::TemporaryFolder folder_;
  RunOptions options_;
};

// What a step of a model needs, on all nodes of the store.
struct Problem {
  ClusterLayout layout;
  FeatureMatrix aggregated;
  Model model;

  Problem(const fs::path& store, const RunOptions& options)
      : layout(ensure_partition(Store(store), options.method.partition(options.partition)).layout),
        aggregated(aggregated_features(layout, options.first_normalisation())),
        model(options.model,
              {layout.data.features.columns(), !layout.data.features.is_dense(), layout.data.labels.num_classes(),
               layout.data.labels.multi_label()},
              5) {}
  ModelInput input(EmbeddingHistory* history = nullptr) {
    return {layout.data.features, aggregated, layout.data.labels, history};
  }
  std::unique_ptr<BatchSource> source(const RunOptions& options) {
    return make_batch_source(options.method, layout, {.normalisation = options.model.layer_normalisation()},
                             options.model.layers);
  }
};

TEST_P(MethodsTest, WithAllNeighboursTheGradientIsThatOfTheWholeGraph) {
  options_.method.fanout = "0";
  options_.method.layer_nodes = 0;
  for (const NormalisationKind kind : {NormalisationKind::kMean, NormalisationKind::kSymmetric}) {
    for (const ConvolutionForm convolution : {ConvolutionForm::kConcat, ConvolutionForm::kPlain}) {
      options_.model.normalisation = kind;
      options_.model.convolution = convolution;
      Problem problem(folder_ / "store", options_);
      EmbeddingHistory history(problem.model, problem.layout.data.num_nodes());
      const auto source = problem.source(options_);
      const auto storage = source->make_storage();
      source->prepare(0, 1 % source->batches_per_epoch(), *storage);
      problem.model.compute_gradients(storage->batch, problem.input(&history), 1);
      const std::vector<float> found(problem.model.gradients().begin(), problem.model.gradients().end());

      RunOptions whole = options_;
      whole.method.method = Method::kFullBatch;
      const auto whole_source = problem.source(whole);
      const auto whole_storage = whole_source->make_storage();
      whole_source->prepare(0, 0, *whole_storage);
      std::vector<uint32_t> targets;  // the layout's rows are the whole batch's rows
      for (const uint32_t r : storage->batch.loss_rows) targets.push_back(storage->batch.inputs[r]);
      std::sort(targets.begin(), targets.end());
      whole_storage->batch.loss_rows = targets;
      problem.model.compute_gradients(whole_storage->batch, problem.input(), 1);
      double difference = 0, norm = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        difference += std::pow(found[i] - problem.model.gradients()[i], 2);
        norm += std::pow(problem.model.gradients()[i], 2);
      }
      EXPECT_GT(norm, 0);
      EXPECT_LT(std::sqrt(difference / norm), 3e-6);
    }
  }
}

TEST_P(MethodsTest, ThreadsDoNotChangeABit) {
  options_.model.dropout = 0.2f;
  set_thread_count(1);
  train("one");
  set_thread_count(3);
  train("three");
  EXPECT_EQ(weights("one"), weights("three"));
}

TEST_P(MethodsTest, InBFloat16ThreadsDoNotChangeABit) {
  options_.model.dropout = 0.2f;
  options_.model.precision = kernels::Precision::kBFloat16;
  if (GetParam() == Method::kVrGcn) {
    EXPECT_THROW(train("refused"), Error);
    return;
  }
  set_thread_count(1);
  train("one");
  set_thread_count(3);
  train("three");
  EXPECT_EQ(weights("one"), weights("three"));
}

TEST_P(MethodsTest, AnInterruptedRunContinuesBitForBit) {
  options_.model.dropout = 0.2f;
  train("whole");
  const Store store(folder_ / "store");
  { Training made(store, options_, RunDirectory::create(folder_ / "pieces", "test")); }
  for (bool done = false; !done;) {  // stops after every step
    Training training(store, options_, RunDirectory::reopen(folder_ / "pieces"));
    if (training.state().epoch < 2 && training.state().batch < training.input().batches->batches_per_epoch())
      request_interrupt();
    try {
      training.run();
      done = true;
    } catch (const Interrupted&) {
    }
    clear_interrupt();
  }
  EXPECT_EQ(weights("whole"), weights("pieces"));
}

INSTANTIATE_TEST_SUITE_P(All, MethodsTest, testing::ValuesIn(test::kOtherMethods),
                         [](const auto& info) { return test::name_of(info.param); });

// Options that change what the model makes of its input or its output go with it into its files.
TEST_P(MethodsTest, AModelFromItsFilesScoresAsInTraining) {
  options_.model.dropout = 0.3f;
  options_.model.dropout_place = DropoutPlace::kBefore;
  options_.model.head = HeadKind::kDense;
  options_.train.normalise_rows = true;
  options_.method.first_layer = GetParam() == Method::kVrGcn ? FirstLayer::kExact : FirstLayer::kBatch;
  const Store store(folder_ / "store");
  const TrainingSummary summary = Training(store, options_, RunDirectory::create(folder_ / "run", "test")).run();
  EXPECT_GT(summary.work.embeddings, 0u);
  EXPECT_GT(summary.work.links, 0u);
  EXPECT_EQ(summary.history_bytes > 0, GetParam() == Method::kVrGcn);
  const Evaluation again = Predictor(folder_ / "run").evaluate({});
  EXPECT_EQ(again.test.scores().loss, summary.evaluation->test.scores().loss);
  EXPECT_EQ(again.test.scores().micro_f1, summary.evaluation->test.scores().micro_f1);
}

TEST_P(MethodsTest, WhatCannotBeIsRefused) {
  const Store store(folder_ / "store");
  options_.train.normalise_rows = options_.train.standardise = true;
  EXPECT_THROW(Training(store, options_, RunDirectory::create(folder_ / "a", "test")), Error);
  options_.train.normalise_rows = options_.train.standardise = false;
  options_.method.first_layer = FirstLayer::kBatch;
  if (GetParam() == Method::kVrGcn)
    EXPECT_THROW(Training(store, options_, RunDirectory::create(folder_ / "b", "test")), Error);
  else
    EXPECT_NO_THROW(Training(store, options_, RunDirectory::create(folder_ / "b", "test")));
}

TEST(Labels, TrainingNeedsOneThatIsKnown) {
  log::set_level(log::Level::kQuiet);
  const test::TemporaryFolder folder;
  generate_store(folder / "store", {.nodes = 300}, StagedDirectory::Existing::kRefuse);
  Dataset data = Store(folder / "store").dataset();
  std::vector<int32_t> labels(data.num_nodes());
  for (NodeId v = 0; v < data.num_nodes(); ++v) labels[v] = data.role(v) == Role::kTrain ? -1 : 0;
  data.labels = Labels::single(std::move(labels), 3);
  write_store(folder / "unlabelled", data, StagedDirectory::Existing::kRefuse);
  const Store store(folder / "unlabelled");
  RunOptions options;
  options.method.method = Method::kCluster;
  for (uint32_t i = 0; i <= std::size(test::kOtherMethods); ++i) {
    const std::string message = test::message_of<Error>(
        [&] { Training(store, options, RunDirectory::create(folder / fmt::format("run-{}", i), "test")); });
    EXPECT_NE(message.find("none of its training nodes has a known label"), std::string::npos) << message;
    if (i < std::size(test::kOtherMethods)) options.method.method = test::kOtherMethods[i];
  }
  log::set_level(log::Level::kNormal);
}

// Whichever way it is evaluated, a model is scored with the matrix that it was trained with.
TEST(FirstLayerOfTheBatch, IsEvaluatedWithTheMatrixItIsTrainedWith) {
  log::set_level(log::Level::kQuiet);
  const test::TemporaryFolder folder;
  GenerateOptions generate;
  generate.nodes = 300;
  generate_store(folder / "store", generate, StagedDirectory::Existing::kRefuse);
  const Store store(folder / "store");
  RunOptions options;
  options.model.hidden = 8;
  options.model.dropout = 0;
  options.model.normalisation = NormalisationKind::kSymmetric;
  options.model.input_normalisation = NormalisationKind::kMean;
  options.method.method = Method::kFullBatch;
  options.method.first_layer = FirstLayer::kBatch;
  options.partition.transductive = true;
  options.train.epochs = 1;
  options.train.learning_rate = 0;
  for (const bool standardise : {false, true}) {
    options.train.standardise = standardise;
    const fs::path run = folder / fmt::format("run-{}", standardise);
    Training training(store, options, RunDirectory::create(run, "test"));
    const TrainingSummary summary = training.run();
    const double trained = read_metrics(run / "metrics.jsonl").at(0).at("loss");
    EXPECT_NEAR(summary.evaluation->train.scores().loss, trained, 1e-5 * trained);
    Predictor predictor(run);
    EXPECT_NEAR(predictor.evaluate({}).train.scores().loss, trained, 1e-5 * trained);
    const EvaluationOptions one_block{.kind = EvaluationKind::kClusters, .clusters = 1};
    EXPECT_NEAR(predictor.evaluate(one_block).train.scores().loss, trained, 1e-5 * trained);
    // A·X of the training graph, which no batch reads, takes no memory.
    EXPECT_EQ(summary.features_bytes, training.input().layout.data.features.stored_bytes());
  }
  log::set_level(log::Level::kNormal);
}

class HistoryTest : public MethodsTest {};

// With the weights as they are, the history of layer 1 is exact after an epoch, which makes that of layer 2 exact after
// the next, and so on.
TEST_P(HistoryTest, BecomesExactWithFrozenWeights) {
  options_.model.layers = 4;
  options_.method.fanout = "1";
  for (const ControlVariate control : {ControlVariate::kCv, ControlVariate::kCvd}) {
    options_.method.control = control;
    options_.model.dropout = control == ControlVariate::kCvd ? 0.3f : 0;  // μ knows no dropout
    Problem problem(folder_ / "store", options_);
    EmbeddingHistory history(problem.model, problem.layout.data.num_nodes());
    const auto source = problem.source(options_);
    const auto storage = source->make_storage();
    const InferenceInput exact_input{problem.layout.data.graph, problem.layout.data.features, problem.aggregated};
    for (uint32_t epoch = 0; epoch < 3; ++epoch) {
      for (uint32_t index = 0; index < source->batches_per_epoch(); ++index) {
        source->prepare(epoch, index, *storage);
        problem.model.compute_gradients(storage->batch, problem.input(&history), 1);
      }
      for (uint32_t layer = 1; layer <= 3; ++layer) {
        const SlabMatrix expected = Inference(problem.model, exact_input, uint64_t{1} << 30, false, layer).run();
        double worst = 0;
        for (size_t i = 0; i < history.values(layer).size(); ++i)
          worst = std::max(worst, std::abs(double{history.values(layer)[i]} - expected.matrix().data[i]));
        if (layer <= epoch + 1)
          EXPECT_LT(worst, 2e-4) << "epoch " << epoch << " layer " << layer;
        else
          EXPECT_GT(worst, 1e-2) << "epoch " << epoch << " layer " << layer;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(VrGcn, HistoryTest, testing::Values(Method::kVrGcn));

}  // namespace
}  // namespace cgcn
