// The picture of the last hidden layer: right components, of the rows that inference gives, the same for any threads
// and memory.
#include "train/embedding_picture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/json.h"
#include "common/random.h"
#include "train/predictor.h"
#include "training_fixture.h"

namespace cgcn {
namespace {

// Rows around (1, 2, …) that vary by 5 along one direction, 2 along another, and 0.1 along all.
RowSample known_rows(size_t columns, std::vector<double>& first, std::vector<double>& second) {
  first.assign(columns, 1 / std::sqrt(static_cast<double>(columns)));
  second.resize(columns);
  for (size_t i = 0; i < columns; ++i) second[i] = (i % 2 == 0 ? 1 : -1) / std::sqrt(static_cast<double>(columns));
  RowSample sample;
  sample.columns = columns;
  Random random(3, Purpose::kTest);
  for (NodeId v = 0; v < 500; ++v) {
    sample.nodes.push_back(v);
    const double along = 5 * random.normal(), across = 2 * random.normal();
    for (size_t i = 0; i < columns; ++i)
      sample.values.push_back(
          static_cast<float>(static_cast<double>(i) + along * first[i] + across * second[i] + 0.1 * random.normal()));
  }
  return sample;
}

TEST(EmbeddingPicture, FindsTheDirectionsOfTheLargestVariance) {
  std::vector<double> first, second;
  const RowSample sample = known_rows(8, first, second);
  const Components found = principal_components(sample);
  double along = 0, across = 0, both = 0;
  for (size_t i = 0; i < 8; ++i) {
    along += found.directions[i] * first[i];
    across += found.directions[8 + i] * second[i];
    both += found.directions[i] * found.directions[8 + i];
  }
  EXPECT_GT(std::abs(along), 0.995);
  EXPECT_GT(std::abs(across), 0.995);
  EXPECT_NEAR(both, 0, 1e-9);
  EXPECT_NEAR(found.share[0], 25 / 29.0, 0.05);
  EXPECT_NEAR(found.share[0] + found.share[1], 1, 0.01);
}

TEST(EmbeddingPicture, TakesRowsThatAreAllAlike) {
  RowSample sample{{0, 1, 2}, 4, std::vector<float>(12, 7)};
  const Components found = principal_components(sample);
  for (const double value : found.projected) EXPECT_EQ(value, 0);
  EXPECT_EQ(found.share[0], 0);
}

class EmbeddingFile : public test::TrainingTest {};

TEST_F(EmbeddingFile, IsOfTheRowsThatInferenceGives) {
  for (const bool multi_label : {false, true}) {
    const fs::path run = train(make_store(multi_label), multi_label ? "multi" : "single").run;
    const nlohmann::json file = parse_json(read_text_file(run / "embeddings.json"));
    Predictor predictor(run);
    const Dataset& data = predictor.data();
    RowSample sample = sample_tested_nodes(data, options_.model.hidden);
    EXPECT_EQ(sample.nodes.size(), data.split_sizes()[2]);
    const SlabMatrix hidden = predictor.embeddings(options_.model.layers - 1);
    sample.columns = hidden.columns();
    for (const NodeId v : sample.nodes) {
      EXPECT_EQ(data.role(v), Role::kTest);
      const float* row = hidden.matrix().data + size_t{v} * hidden.columns();
      sample.values.insert(sample.values.end(), row, row + hidden.columns());
    }
    EXPECT_EQ(file, describe_embeddings(sample, data));
    for (size_t i = 0; i < sample.nodes.size(); ++i)
      for (const auto& c : file["classes"][i]) {
        const std::string name = file["class_names"][c.get<size_t>()];
        bool has = false;
        for (uint32_t k = 0; k < data.labels.num_classes(); ++k)
          has |= data.class_name(k) == name &&
                 (multi_label ? data.labels.has(sample.nodes[i], k)
                              : data.labels.class_of(sample.nodes[i]) == static_cast<int32_t>(k));
        EXPECT_TRUE(has);
      }
  }
}

TEST_F(EmbeddingFile, HasTheValuesOfRegression) {
  const Store store(make_store());
  Dataset data = store.dataset();
  std::vector<float> values(data.num_nodes());
  for (NodeId v = 0; v < data.num_nodes(); ++v) values[v] = v % 3 == 0 ? NAN : 0.5f * static_cast<float>(v % 100);
  data.labels = Labels::numbers(SharedArray<float>(values));
  RowSample sample = sample_tested_nodes(data, 2);
  sample.columns = 2;
  for (size_t i = 0; i < 2 * sample.nodes.size(); ++i) sample.values.push_back(static_cast<float>(i % 7));
  const nlohmann::json picture = describe_embeddings(sample, data);
  EXPECT_FALSE(picture.contains("classes"));
  ASSERT_EQ(picture["values"].size(), sample.nodes.size());
  for (size_t i = 0; i < sample.nodes.size(); ++i) {
    const NodeId v = sample.nodes[i];
    EXPECT_EQ(picture["values"][i], v % 3 == 0 ? nlohmann::json() : nlohmann::json(0.5 * (v % 100)));
  }
}

TEST_F(EmbeddingFile, IsTheSameForAnyThreads) {
  const fs::path store = make_store();
  set_thread_count(1);
  const std::string one = read_text_file(train(store, "one").run / "embeddings.json");
  set_thread_count(3);
  EXPECT_EQ(read_text_file(train(store, "three").run / "embeddings.json"), one);
}

TEST_F(EmbeddingFile, IsNotThereForOneLayer) {
  options_.model.layers = 1;
  EXPECT_FALSE(fs::exists(train(make_store(), "one").run / "embeddings.json"));
}

TEST_F(EmbeddingFile, HasABoundedSample) {
  const Store store(make_store());
  const Dataset data = store.dataset();
  EXPECT_EQ(sample_tested_nodes(data, 1 << 20).nodes.size(), 1u);
  const RowSample some = sample_tested_nodes(data, kMostSampledBytes / 4 / 50);
  EXPECT_EQ(some.nodes.size(), 50u);
  EXPECT_TRUE(std::is_sorted(some.nodes.begin(), some.nodes.end()));
  EXPECT_GT(some.nodes.back(), data.num_nodes() / 2);  // spread over all of them
}

}  // namespace
}  // namespace cgcn
