// What options of training promise, exactly: which test is exact, parameters with weight decay, which edges blocks
// leave out; and that the neighbourhood of a few nodes gives the bits of the whole graph.
#include <gmock/gmock.h>

#include <map>

#include "graph/graph_builder.h"
#include "kernels/gemm.h"
#include "kernels/use_targets.h"
#include "train/neighbourhood.h"
#include "train/predictor.h"
#include "train/safetensors.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

class ExactTest : public test::TrainingTest {
 protected:
  ExactTest() { set_thread_count(1); }
  static std::map<std::string, std::vector<float>> parameters(const fs::path& file) {
    const SafetensorsFile tensors(file);
    std::map<std::string, std::vector<float>> found;
    for (const std::string& name : tensors.names()) {
      const auto values = tensors.values<float>(name);
      found[name] = {values.begin(), values.end()};
    }
    return found;
  }
};

TEST_F(ExactTest, TheTestIsOfTheWholeGraphAlsoWhereEpochsAreValidatedOnBlocks) {
  options_.train.evaluation = {EvaluationKind::kClusters, 12};
  const TrainingSummary summary = train(make_store(), "run");
  Predictor predictor(folder_ / "run");
  const Scores exact = predictor.evaluate({EvaluationKind::kExact}).test.scores(),
               blocks = predictor.evaluate({EvaluationKind::kClusters, 12}).test.scores();
  ASSERT_NE(exact.loss, blocks.loss) << "nothing was cut: this shows nothing";
  EXPECT_EQ(summary.evaluation->test.scores().loss, exact.loss);
  const nlohmann::json last = read_metrics(folder_ / "run" / "metrics.jsonl").at(summary.kept_epoch - 1);
  EXPECT_EQ(last.at("validation").at("loss").get<double>(),
            predictor.evaluate({EvaluationKind::kClusters, 12}).validation.scores().loss);
}

// Edges within blocks alone, from layer 2 on; layer 1 has the A·X of all edges.
TEST_F(ExactTest, BlocksLeaveOutTheLinksBetweenThem) {
  train(make_store(), "run");
  const SavedModel saved = load_model(RunFiles(folder_ / "run").best());
  const Store store(make_store());
  PartitionOptions partition;
  partition.parts = 12;
  partition.transductive = true;
  const ClusterLayout layout = ensure_partition(store, partition).layout;
  const Dataset& data = layout.data;
  const auto offsets = layout.cluster_offsets.span();
  const auto block_of = [&](NodeId v) { return std::upper_bound(offsets.begin(), offsets.end(), v) - offsets.begin(); };
  EdgeList within;
  uint64_t cut = 0;
  for (NodeId v = 0; v < data.num_nodes(); ++v)
    for (const NodeId u : data.graph.neighbours(v)) {
      if (u < v && block_of(u) == block_of(v)) within.add(u, v);
      cut += block_of(u) != block_of(v);
    }
  ASSERT_GT(cut, 0u);
  const CsrGraph cut_graph = build_graph(data.num_nodes(), within, {}, nullptr);
  const FeatureMatrix aggregated = aggregated_features(layout, saved.options.first_normalisation());
  const Evaluation expected = evaluate_exactly(*saved.model, {cut_graph, data.features, aggregated}, data,
                                               uint64_t{1} << 30, /*show_progress=*/false);
  const Evaluation found = Predictor(folder_ / "run").evaluate({EvaluationKind::kClusters, 12});
  EXPECT_NEAR(found.test.scores().loss, expected.test.scores().loss, 1e-5);
  EXPECT_NEAR(found.validation.scores().loss, expected.validation.scores().loss, 1e-5);
  EXPECT_EQ(found.test.confusion(), expected.test.confusion());
}

// A handful of validation nodes: only the rows that they need are computed, and the scores are those of the whole
// graph.
TEST_F(ExactTest, FewValidationNodesAreScoredAsOnTheWholeGraph) {
  options_.model.layers = 2;
  options_.train.epochs = 2;
  options_.train.keep = KeptModel::kLast;
  for (const bool multi_label : {false, true}) {
    Dataset data = Store(make_store(multi_label)).dataset();
    std::vector<uint8_t> split(data.split.span().begin(), data.split.span().end());
    uint32_t kept = 0;
    for (uint8_t& role : split)
      if (role == static_cast<uint8_t>(Role::kValidation) && kept++ >= 5) role = static_cast<uint8_t>(Role::kTest);
    data.split = SharedArray<uint8_t>(std::move(split));
    const fs::path store = folder_ / fmt::format("few-{}", multi_label);
    write_store(store, data, StagedDirectory::Existing::kRefuse);
    for (const char* scaled : {"no", "columns", "rows"}) {
      options_.train.standardise = scaled == std::string("columns");
      options_.train.normalise_rows = scaled == std::string("rows");
      const std::string run = fmt::format("run-{}-{}", multi_label, scaled);
      train(store, run);
      const nlohmann::json last = read_metrics(RunFiles(folder_ / run).metrics()).back().at("validation");
      const Scores whole = Predictor(folder_ / run).evaluate({}).validation.scores();
      EXPECT_EQ(whole.nodes, 5u);
      EXPECT_EQ(last.at("loss").get<double>(), whole.loss) << run;
      EXPECT_EQ(last.at("micro_f1").get<double>(), whole.micro_f1) << run;
    }
  }
}

// A model is used in the precision that it was trained in, or in the other one: then the scores are near.
TEST_F(ExactTest, AModelIsUsedInEitherPrecision) {
  using kernels::Precision;
  options_.train.epochs = 6;
  for (const Precision trained : {Precision::kFloat32, Precision::kBFloat16}) {
    options_.model.precision = trained;
    const std::string run = trained == Precision::kFloat32 ? "full" : "half";
    const TrainingSummary summary = train(make_store(), run);
    const auto score = [&](UsedPrecision used) {
      Predictor predictor(folder_ / run, {}, {}, dist::no_group(), {used});
      EXPECT_EQ(predictor.saved().options.model.precision, predictor.saved().model->options().precision);
      return predictor.evaluate({}).test.scores();
    };
    const Scores full = score(UsedPrecision::kFloat32), half = score(UsedPrecision::kBFloat16);
    ASSERT_NE(full.loss, half.loss) << "the precision changes nothing";
    EXPECT_NEAR(full.loss, half.loss, 0.01 * full.loss);
    EXPECT_NEAR(full.micro_f1, half.micro_f1, 0.01);
    const double own = trained == Precision::kFloat32 ? full.loss : half.loss;
    EXPECT_EQ(score(UsedPrecision::kTrained).loss, own);
    EXPECT_EQ(summary.evaluation->test.scores().loss, own);
    const nlohmann::json kept = read_metrics(folder_ / run / "metrics.jsonl").at(summary.kept_epoch - 1);
    EXPECT_EQ(kept.at("validation").at("loss").get<double>(),
              Predictor(folder_ / run).evaluate({}).validation.scores().loss);
  }
}

// Large enough for rows in the order of the training's clusters, which its own test and a later evaluation take.
TEST_F(ExactTest, ClusterOrderHasTheScoresOfTheNodesOrder) {
  GenerateOptions generated;
  generated.nodes = 17000;
  generated.edges = 40000;
  generated.features = 8;
  generate_store(folder_ / "large", generated, StagedDirectory::Existing::kRefuse);
  options_.model.layers = 2;
  options_.model.hidden = 1024;
  options_.train.epochs = 1;
  const TrainingSummary summary = train(folder_ / "large", "run");
  const Store store(folder_ / "large");
  const Dataset data = store.dataset();
  EXPECT_EQ(InferenceOrder::helps(uint64_t{17000} * 1024 * sizeof(float)), kernels::rows_are_independent());
  ASSERT_TRUE(find_partition(store, options_.method.partition(options_.partition)).has_value());
  const SavedModel saved = load_model(RunFiles(folder_ / "run").best());
  const PreparedFeatures prepared = prepare_features(store, data, options_.first_normalisation(), {});
  const double expected = evaluate_exactly(*saved.model, {data.graph, prepared.x, prepared.aggregated}, data,
                                           uint64_t{1} << 32, /*show_progress=*/false)
                              .test.scores()
                              .loss;
  EXPECT_EQ(summary.evaluation->test.scores().loss, expected);
  EXPECT_EQ(Predictor(folder_ / "run").evaluate({}).test.scores().loss, expected);
}

// Gradients clipped to nothing: what moves is what decays.
TEST_F(ExactTest, DecayReachesTheLayersOfItsScopeOnly) {
  options_.model.bias = true;
  options_.train.clip = 1e-30;
  options_.optimiser.weight_decay = 0.1f;
  const Store store(make_store());
  { Training made(store, options_, RunDirectory::create(folder_ / "initial", "test")); }
  const auto initial = parameters(RunFiles(folder_ / "initial").last());
  for (const DecayScope scope : {DecayScope::kFirstLayer, DecayScope::kAll}) {
    options_.optimiser.decay_scope = scope;
    const std::string run = scope == DecayScope::kAll ? "all" : "first";
    train(store.path(), run);
    const auto trained = parameters(RunFiles(folder_ / run).last());
    for (const auto& [name, values] : initial) {
      if (!name.ends_with(".weight")) continue;
      const bool decays = scope == DecayScope::kAll || name == "layer1.weight";
      EXPECT_EQ(trained.at(name) != values, decays) << run << " " << name;
    }
  }
}

// Every kind of model, dense and sparse features, kept and missing A·X, asked nodes in the last block and not.
TEST_F(ExactTest, TheNeighbourhoodOfSomeNodesHasTheBitsOfTheWholeGraph) {
  const auto make = [&](const std::string& name, uint64_t nodes) {
    GenerateOptions generated;
    generated.nodes = nodes;
    generated.edges = nodes;
    generated.features = 20;
    generate_store(folder_ / name, generated, StagedDirectory::Existing::kRefuse);
    return Store(folder_ / name);
  };
  struct Kind {
    ConvolutionForm convolution;
    NormalisationKind normalisation;
    bool residual, standardise;
    HeadKind head;
    uint32_t hidden;
    Jumping jumping = Jumping::kNone;
    bool batch_norm = false;
    kernels::Precision precision = kernels::Precision::kFloat32;
    int64_t targets = 0;  // of Highway; 0: all that the machine has
  };
  std::vector<Kind> kinds = {
      {ConvolutionForm::kConcat, NormalisationKind::kMean, false, false, HeadKind::kConvolution, 16},
      {ConvolutionForm::kPlain, NormalisationKind::kSymmetric, true, true, HeadKind::kConvolution, 33},
      {ConvolutionForm::kConcat, NormalisationKind::kSelfDiagonal, true, false, HeadKind::kDense, 7},
      {ConvolutionForm::kConcat, NormalisationKind::kMean, true, false, HeadKind::kLinear, 12, Jumping::kConcat, true},
      {ConvolutionForm::kPlain, NormalisationKind::kSelf, false, true, HeadKind::kLinear, 18, Jumping::kMax},
  };
  for (size_t i = 0; i < 5; ++i) {
    kinds.push_back(kinds[i]);
    kinds.back().precision = kernels::Precision::kBFloat16;
  }
  kinds.push_back(kinds[0]);
  kinds.back().hidden = 53;
  kinds.back().targets = kernels::targets_of_openblas();  // whose rows depend on their place
  uint32_t computed = 0;
  for (const NodeId nodes :
       {NodeId{3000}, NodeId{6 * kInferenceBlock}}) {  // with a last block that is shorter, and without
    const Store store = make(fmt::format("s{}", nodes), nodes);
    const Dataset data = store.dataset();
    for (const Kind& kind : kinds) {
      kernels::use_targets(kind.targets);
      options_.model.convolution = kind.convolution;
      options_.model.normalisation = options_.model.input_normalisation = kind.normalisation;
      options_.model.residual = kind.residual;
      options_.model.head = kind.head;
      options_.model.hidden = kind.hidden;
      options_.model.jumping = kind.jumping;
      options_.model.batch_norm = kind.batch_norm;
      options_.model.precision = kind.precision;
      const Model model(options_.model, shape_of(data), 3);
      const ColumnScaling scaling = kind.standardise ? measure_columns(data) : ColumnScaling();
      const Normalisation first = options_.first_normalisation();
      const PreparedFeatures prepared = prepare_features(store, data, first, scaling);
      for (uint32_t layer = 1; layer <= options_.model.layers; ++layer) {
        const SlabMatrix all =
            Inference(model, {data.graph, prepared.x, prepared.aggregated}, uint64_t{1} << 30, false, layer).run();
        for (const bool kept : {true, false}) {
          if (kept ? kind.standardise : kind.targets != 0) continue;  // kept rows are of the machine's instructions
          NeighbourhoodInference inference(model, data, first, scaling,
                                           kept ? std::optional(prepared.aggregated) : std::nullopt);
          ASSERT_TRUE(inference.possible());
          for (const std::vector<NodeId>& asked : {std::vector<NodeId>{7}, {2000, 3, 2000, 17}, {nodes - 1, 0, 700}}) {
            if (!inference.plan(asked, layer, uint64_t{1} << 30)) continue;  // more than half of the graph
            ++computed;
            EXPECT_LT(inference.planned_rows(), uint64_t{nodes} * layer / 2 + 1);
            const SlabMatrix some = inference.run();
            ASSERT_EQ(some.rows(), asked.size());
            for (size_t i = 0; i < asked.size(); ++i)
              EXPECT_EQ(std::vector<float>(some.matrix().row(i), some.matrix().row(i) + some.columns()),
                        std::vector<float>(all.matrix().row(asked[i]), all.matrix().row(asked[i]) + all.columns()))
                  << nodes << " nodes, hidden " << kind.hidden << ", layer " << layer << ", node " << asked[i]
                  << ", kept " << kept;
          }
        }
      }
    }
  }
  kernels::use_targets(0);
  EXPECT_GT(computed, 250u) << "too few plans for it to show something";
}

// They would have to be sorted by name: the message says so, and not that features are standardised.
TEST_F(ExactTest, SparseColumnsInAnotherOrderAreRefused) {
  Dataset data = Store(make_store()).dataset();
  const NodeId nodes = data.num_nodes();
  std::vector<EdgeOffset> offsets(size_t{nodes} + 1);
  std::vector<uint32_t> columns(nodes);
  for (NodeId v = 0; v < nodes; ++v) {
    offsets[v + 1] = v + 1;
    columns[v] = static_cast<uint32_t>(std::max(0, data.labels.class_of(v))) % 2;
  }
  data.features = FeatureMatrix::sparse(std::move(offsets), std::move(columns), std::vector<float>(nodes, 1), 2);
  data.feature_names = {"a", "b"};
  write_store(folder_ / "sparse", data, StagedDirectory::Existing::kRefuse);
  train(folder_ / "sparse", "run");
  data.feature_names = {"b", "a"};
  write_store(folder_ / "other", data, StagedDirectory::Existing::kRefuse);
  const std::string message =
      test::message_of<Error>([&] { Predictor(folder_ / "run", folder_ / "other").evaluate({}); });
  EXPECT_THAT(message, testing::HasSubstr("sparse feature columns"));
  EXPECT_THAT(message, testing::Not(testing::HasSubstr("--standardise")));
}

}  // namespace
}  // namespace cgcn
