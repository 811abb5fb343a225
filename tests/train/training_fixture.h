// Trains on small generated graphs in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/threads.h"
#include "generate/generate.h"
#include "support.h"
#include "train/training.h"

namespace cgcn::test {

class TrainingTest : public testing::Test {
 protected:
  TrainingTest() {
    log::set_level(log::Level::kQuiet);
    options_.model.layers = 3;
    options_.model.hidden = 16;
    options_.partition.parts = 4;
    options_.train.per_batch = 2;
    options_.train.epochs = 3;
  }
  ~TrainingTest() override {
    clear_interrupt();
    set_thread_count(0);
    log::set_level(log::Level::kNormal);
  }

  fs::path make_store(bool multi_label = false, uint64_t seed = 1) {
    const fs::path path = folder_ / fmt::format("store-{}-{}", multi_label, seed);
    GenerateOptions options;
    options.nodes = 600;
    options.multi_label = multi_label;
    options.seed = seed;
    if (!fs::exists(path)) generate_store(path, options, StagedDirectory::Existing::kRefuse);
    return path;
  }
  TrainingSummary train(const fs::path& store, const std::string& run) {
    const Store opened(store);
    return Training(opened, options_, RunDirectory::create(folder_ / run, "test")).run();
  }
  std::vector<float> weights(const fs::path& file) {
    const SavedModel saved = load_model(file);
    return {saved.model->values().begin(), saved.model->values().end()};
  }

  TemporaryFolder folder_;
  RunOptions options_;
};

}  // namespace cgcn::test
