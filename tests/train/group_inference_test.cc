// Exact inference on several ranks: the bits of one process, whatever the model, the memory and the number of ranks.
#include <gtest/gtest.h>

#include "common/session.h"
#include "dist/thread_group.h"
#include "train/evaluation.h"
#include "train/predictor.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

using GroupInferenceTest = test::TrainingTest;

std::vector<float> all_rows(const Inference& inference, const GraphShare& share, RowSample* sample) {
  const SlabMatrix rows = inference.run(sample);
  std::vector<float> values;
  share.collect(rows, 700, [&](kernels::ConstMatrix part, NodeId first) {
    EXPECT_EQ(values.size(), size_t{first} * part.columns);
    values.insert(values.end(), part.data, part.data + part.rows * part.columns);
  });
  return values;
}

TEST_F(GroupInferenceTest, HasTheBitsOfOneProcess) {
  const ThreadCountScope one_thread(1);
  for (const bool multi_label : {false, true}) {
    GenerateOptions generated;
    generated.nodes = 3000;  // six blocks, the last one shorter
    generated.edges = 12000;
    generated.features = 20;
    generated.multi_label = multi_label;
    const fs::path path = folder_ / fmt::format("graph-{}", multi_label);
    generate_store(path, generated, StagedDirectory::Existing::kRefuse);
    const Store store(path);
    const Dataset data = store.dataset();
    struct Kind {
      ConvolutionForm form;
      Jumping jumping;
      uint32_t hidden;
      bool makes_own;  // if rows are spilled
    };
    for (const Kind& kind : {Kind{ConvolutionForm::kConcat, Jumping::kMax, 16, false},
                             {ConvolutionForm::kPlain, Jumping::kNone, 33, false},
                             {ConvolutionForm::kConcat, Jumping::kNone, 96, true}}) {
      options_.model.precision = multi_label ? kernels::Precision::kBFloat16 : kernels::Precision::kFloat32;
      options_.model.convolution = kind.form;
      options_.model.hidden = kind.hidden;
      options_.model.jumping = kind.jumping;
      const Model model(options_.model, shape_of(data), 3);
      const PreparedFeatures prepared = prepare_features(store, data, options_.first_normalisation(), {});
      const InferenceInput input{data.graph, prepared.x, prepared.aggregated};
      const uint64_t plenty = uint64_t{1} << 30;
      RowSample sample{{0, 5, kInferenceBlock - 1, kInferenceBlock, 1700, 2999}, 0, {}};
      const GraphShare alone(data.graph);
      const std::vector<float> expected = all_rows(Inference(model, input, plenty, false), alone, &sample);
      ASSERT_EQ(expected.size(), size_t{3000} * data.labels.num_classes());
      const Evaluation scores = evaluate_exactly(model, input, data, plenty, false);
      // So little that rows are spilled.
      const uint64_t little = Inference::least_memory(model, data.num_nodes()) + 3 * 4 * data.num_nodes();
      ASSERT_TRUE(Inference(model, input, little, false).spills());
      EXPECT_EQ(Inference(model, input, little, false, 2).run_below().makes_own, kind.makes_own);
      for (const uint32_t ranks : {2u, 3u, 4u, 13u})
        test::run_ranks(ranks, [&](dist::Group& group) {
          const ThreadCountScope threads(1);
          const GraphShare share(group, data.graph);
          EXPECT_EQ(share.of(0).begin, 0u);
          EXPECT_EQ(share.of(ranks - 1).end, 3000u);
          InferenceInput shared = input;
          shared.share = &share;
          for (const uint64_t memory : {plenty, little}) {
            RowSample own_sample{sample.nodes, 0, {}};
            const std::vector<float> rows = all_rows(Inference(model, shared, memory, false), share, &own_sample);
            EXPECT_EQ(own_sample.values, sample.values);
            EXPECT_EQ(rows, group.is_first() ? expected : std::vector<float>()) << ranks << " ranks, " << memory;
          }
          const Evaluation own = evaluate_exactly(model, shared, data, plenty, false);
          for (const Role role : {Role::kTrain, Role::kValidation, Role::kTest}) {
            EXPECT_EQ(own.of(role).pack(), scores.of(role).pack());
            EXPECT_EQ(own.of(role).scores().loss, scores.of(role).scores().loss);
          }
        });
    }
  }
}

TEST_F(GroupInferenceTest, RanksShareTheLinks) {
  GenerateOptions generated;
  generated.nodes = 6000;
  generate_store(folder_ / "graph", generated, StagedDirectory::Existing::kRefuse);
  const Store store(folder_ / "graph");
  const Dataset data = store.dataset();
  test::run_ranks(4, [&](dist::Group& group) {
    const GraphShare share(group, data.graph);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(share.of(rank).begin % kInferenceBlock, 0u);
      const uint64_t links = data.graph.offsets()[share.of(rank).end] - data.graph.offsets()[share.of(rank).begin];
      EXPECT_NEAR(static_cast<double>(links), static_cast<double>(data.graph.num_entries()) / 4,
                  static_cast<double>(data.graph.num_entries()) / 8);
    }
    EXPECT_LE(share.rows(), data.num_nodes());
  });
}

TEST_F(GroupInferenceTest, AnInterruptOfTheFirstStopsAll) {
  const Store store(make_store());
  const Dataset data = store.dataset();
  const Model model(options_.model, shape_of(data), 3);
  const PreparedFeatures prepared = prepare_features(store, data, options_.first_normalisation(), {});
  request_interrupt();
  test::run_ranks(2, [&](dist::Group& group) {
    Session nobody({}, {});  // the others do not listen
    const SessionScope scope(group.is_first() ? nullptr : &nobody);
    const GraphShare share(group, data.graph);
    EXPECT_THROW(
        evaluate_exactly(model, {data.graph, prepared.x, prepared.aggregated, &share}, data, uint64_t{1} << 30, false),
        dist::GroupInterrupted);
  });
}

TEST_F(GroupInferenceTest, AnInterruptOfTheFirstAmongBlocksStopsAll) {
  train(make_store(), "run");
  const EvaluationOptions blocks{EvaluationKind::kClusters, 12};
  Predictor(folder_ / "run").evaluate(blocks);  // so that only the scores are to be computed
  request_interrupt();
  test::run_ranks(2, [&](dist::Group& group) {
    Session nobody({}, {});  // the others do not listen
    const SessionScope scope(group.is_first() ? nullptr : &nobody);
    Predictor predictor(folder_ / "run", {}, {}, group);
    EXPECT_THROW(predictor.evaluate(blocks), dist::GroupInterrupted);
  });
}

}  // namespace
}  // namespace cgcn
