// That generated graphs behave like those they stand for, on smaller sizes of the same kind.
// benchmarks/generate/likeness.py shows the same at full size.
#include <gtest/gtest.h>

#include "common/log.h"
#include "generate/generate.h"
#include "partition/partition.h"
#include "partition/quality.h"
#include "support.h"

namespace cgcn {
namespace {

class Likeness : public testing::Test {
 protected:
  Likeness() { log::set_level(log::Level::kQuiet); }
  ~Likeness() override { log::set_level(log::Level::kNormal); }

  double share_kept(const Store& store, uint32_t parts, PartitionMethod method) {
    PartitionOptions options;
    options.parts = parts;
    options.method = method;
    return measure_quality(ensure_partition(store, options).layout, 1, 1).share_kept();
  }

  test::TemporaryFolder folder_;
};

// Clusters of the size that the paper's p gives: PPI 50, Reddit 1500, Amazon2M 15000.
TEST_F(Likeness, MetisKeepsFarMoreLinksThanChance) {
  struct Row {
    ShapeName like;
    double scale;
    uint32_t paper_parts;
    double least_kept;
  };
  for (const Row& row : {Row{ShapeName::kPpi, 0.2, 50, 0.8}, Row{ShapeName::kReddit, 0.02, 1500, 0.2},
                         Row{ShapeName::kAmazon2m, 0.004, 15000, 0.2}}) {
    const fs::path path = folder_ / fmt::format("store-{}", row.paper_parts);
    generate_store(path, {.like = row.like, .scale = row.scale, .features = 8}, StagedDirectory::Existing::kRefuse);
    const Store store(path);
    const auto parts = static_cast<uint32_t>(row.paper_parts * row.scale);
    const double metis = share_kept(store, parts, PartitionMethod::kMetis);
    const double chance = share_kept(store, parts, PartitionMethod::kRandom);
    fmt::print("{} × {}: METIS keeps {:.1f} % of the edges in {} clusters, chance {:.1f} %\n",
               store.meta().at("name").get<std::string>(), row.scale, 100 * metis, parts, 100 * chance);
    EXPECT_GT(metis, row.least_kept);
    EXPECT_GT(metis, 5 * chance);
  }
}

}  // namespace
}  // namespace cgcn
