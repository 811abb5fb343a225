// The generated PPI shape behaves as the paper's tables say of PPI: more layers score higher, and a random partition
// loses to a clustered one at equal epochs. A fifth of the size; benchmarks/generate/likeness.py shows the whole.
#include <gtest/gtest.h>

#include "common/log.h"
#include "generate/generate.h"
#include "support.h"
#include "train/trainer.h"

namespace cgcn {
namespace {

TEST(Likeness, DepthPaysAndCutLinksCost) {
  log::set_level(log::Level::kQuiet);
  const test::TemporaryFolder folder;
  generate_store(folder / "store", {.like = ShapeName::kPpi, .scale = 0.2}, StagedDirectory::Existing::kRefuse);
  const Store store(folder / "store");
  const auto score = [&](uint32_t layers, PartitionMethod method) {
    RunOptions options;
    options.model.layers = layers;
    options.model.hidden = 64;
    options.partition.parts = 10;
    options.partition.method = method;
    options.train.epochs = 40;
    options.train.eval_every = 10;
    options.train.seed = 2;
    const std::string run = fmt::format("run-{}-{}", layers, static_cast<int>(method));
    const auto summary = Trainer(store, options, RunDirectory::create(folder / run, "test")).run();
    return 100 * summary.evaluation->test.scores().micro_f1;
  };
  const double two = score(2, PartitionMethod::kMetis), three = score(3, PartitionMethod::kMetis);
  const double five = score(5, PartitionMethod::kMetis), random = score(3, PartitionMethod::kRandom);
  EXPECT_GT(three, two + 1);
  EXPECT_GT(five, three + 0.5);
  EXPECT_GT(three, random + 3);
  log::set_level(log::Level::kNormal);
}

}  // namespace
}  // namespace cgcn
