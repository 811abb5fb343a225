// Which of several networks `auto` takes.
#include "engine/settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "clustergcn/clustergcn.h"
#include "common/log.h"
#include "common/threads.h"
#include "support.h"

namespace cgcn {
namespace {

constexpr uint32_t kClasses = 4, kColumns = 24;

// What their features tell, and what share of their edges lead to nodes of their class.
fs::path make_store(const fs::path& path, float told_by_features, double alike, bool sparse = false,
                    uint32_t nodes = 1200) {
  constexpr uint32_t kLinks = 8;
  std::mt19937 random(1);
  std::normal_distribution<float> noise;
  std::uniform_real_distribution<double> chance;
  std::vector<uint32_t> from, to;
  std::vector<float> features;
  std::vector<int32_t> labels;
  std::vector<uint8_t> split;
  for (uint32_t v = 0; v < nodes; ++v) {
    for (uint32_t link = 0; link < kLinks; ++link) {
      const uint32_t other = static_cast<uint32_t>(random() % nodes);
      from.push_back(v);
      to.push_back(chance(random) < alike ? other - other % kClasses + v % kClasses : other);
    }
    for (uint32_t f = 0; f < kColumns; ++f)
      features.push_back(noise(random) + (f == v % kClasses ? told_by_features : 0));
    labels.push_back(static_cast<int32_t>(v % kClasses));
    split.push_back(static_cast<uint8_t>(v / kClasses % 5 < 3 ? 0 : v / kClasses % 5 - 2));
  }
  clustergcn::GraphArrays arrays;
  arrays.nodes = nodes;
  arrays.from = clustergcn::view(from);
  arrays.to = clustergcn::view(to);
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> columns;
  for (uint32_t i = 0; i < features.size(); ++i) columns.push_back(i % kColumns);
  for (uint32_t v = 0; v <= nodes; ++v) offsets.push_back(uint64_t{v} * kColumns);
  if (sparse) {
    arrays.feature_offsets = clustergcn::view(offsets);
    arrays.feature_columns = clustergcn::view(columns);
    arrays.feature_values = clustergcn::view(features);
    arrays.feature_width = kColumns;
  } else {
    arrays.features = clustergcn::view(features, kColumns);
  }
  arrays.labels = clustergcn::view(labels);
  arrays.split = clustergcn::view(split);
  clustergcn::Graph::from_arrays(arrays).save(path.string());
  return path;
}

class SettingsTest : public testing::Test {
 protected:
  ~SettingsTest() override { set_thread_count(0); }

  // Narrow networks and half the epochs: a trial of each is short, also under a sanitizer.
  static std::unique_ptr<RunSettings> settled(const Store& store,
                                              std::vector<std::pair<std::string, std::string>> given = {}) {
    auto made = std::make_unique<RunSettings>();
    RunSettings& settings = *made;
    settings.given = std::move(given);
    settings.given.insert(settings.given.begin(), {{"hidden", "64"}, {"epochs", "100"}});
    const log::Silence silence;
    settings.settle(store);
    return made;
  }

  test::TemporaryFolder folder_;
};

TEST_F(SettingsTest, NeighboursAreAveragedWhereFeaturesTellLittle) {
  const Store store(make_store(folder_ / "store", 0.4f, 0.4));
  for (const unsigned threads : {1u, 2u}) {
    set_thread_count(threads);
    const auto settings = settled(store);
    const RunOptions& options = settings->options;
    EXPECT_EQ(options.model.convolution, ConvolutionForm::kPlain);
    EXPECT_EQ(options.train.epochs, 100u);  // those of the run, not of the trial
    EXPECT_EQ(options.train.warmup, 5u);
    // The one that is taken was ahead of the first in a second trial too, which was another than the one before.
    const Trials& trials = settings->trials;
    ASSERT_TRUE(trials.list[0].longer && trials.list[trials.taken].longer);
    EXPECT_GT(*trials.list[trials.taken].longer, *trials.list[0].longer);
    EXPECT_NE(*trials.list[0].longer, trials.list[0].score);
    for (size_t i = 1; i < trials.list.size(); ++i) EXPECT_EQ(trials.list[i].longer.has_value(), i == trials.taken);
    EXPECT_EQ(settings->before.list().back(), std::make_pair(std::string("trying networks"), trials.seconds));
  }
}

#ifndef __SANITIZE_THREAD__  // the same code again

TEST_F(SettingsTest, ANodesOwnFeaturesStayApartWhereEdgesTellNothing) {
  const Store store(make_store(folder_ / "store", 2, 0));
  EXPECT_EQ(settled(store)->options.model.convolution, ConvolutionForm::kConcat);
}

TEST_F(SettingsTest, WhatIsGivenIsNotChanged) {
  const Store store(make_store(folder_ / "store", 0.4f, 0.4));
  const RunOptions options = settled(store, {{"conv", "concat"}, {"layers", "3"}})->options;
  EXPECT_EQ(options.model.convolution, ConvolutionForm::kConcat);
  EXPECT_EQ(options.model.layers, 3u);
}

// With sparse features --first-layer batch allows no dropout of the input, which the symmetric networks have.
TEST_F(SettingsTest, WhatContradictsTheGivenIsNotTried) {
  const Store store(make_store(folder_ / "store", 0.4f, 0.4, /*sparse=*/true));
  const auto settings = settled(store, {{"first-layer", "batch"}, {"epochs", "30"}});
  EXPECT_GE(settings->trials.list.size(), 2u);
  for (const Trials::Trial& trial : settings->trials.list)
    EXPECT_EQ(trial.network.find("symmetric"), std::string::npos);
}

// Clusters that cannot be read: the network on them, which nobody asked for, fails alone.
TEST_F(SettingsTest, ATrialThatFailsEndsNothing) {
  const fs::path path = make_store(folder_ / "store", 2, 0, /*sparse=*/false, 4000);
  const auto settle = [&] { return settled(Store(path), {{"hidden", "8"}, {"epochs", "30"}}); };
  EXPECT_TRUE(std::isfinite(settle()->trials.list.back().score));
  std::vector<fs::path> clusters;
  for (const auto& entry : fs::directory_iterator(path / "partitions"))
    if (!entry.path().filename().string().starts_with("metis-1-")) clusters.push_back(entry.path());  // one batch
  ASSERT_FALSE(clusters.empty());
  for (const fs::path& folder : clusters) {
    fs::remove_all(folder);
    write_file_atomically(folder, "no folder");
  }
  const auto settings = settle();
  const Trials& trials = settings->trials;
  EXPECT_EQ(trials.list.back().network, "concat on clusters");
  EXPECT_FALSE(std::isfinite(trials.list.back().score));
  EXPECT_TRUE(std::isfinite(trials.list[trials.taken].score));
}

#endif

}  // namespace
}  // namespace cgcn
