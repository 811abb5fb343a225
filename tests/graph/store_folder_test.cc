// What --force may delete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/error.h"
#include "graph/graph_builder.h"
#include "graph/store.h"
#include "support.h"

namespace cgcn {
namespace {

using testing::HasSubstr;

class StoreFolder : public testing::Test {
 protected:
  StoreFolder() { write(store_); }
  static void write(const fs::path& path) {
    EdgeList edges;
    edges.add(0, 1);
    Dataset dataset;
    dataset.name = "small";
    dataset.graph = build_graph(2, edges, {}, nullptr);
    dataset.features = FeatureMatrix::identity(2);
    write_store(path, dataset, StagedDirectory::Existing::kReplace);
  }
  void put(const fs::path& file, const std::string& text = "x") const {
    fs::create_directories((store_ / file).parent_path());
    std::ofstream(store_ / file) << text;
  }
  std::string refusal() const {
    const std::string message = test::message_of<Error>([&] { write(store_); });
    EXPECT_TRUE(fs::exists(store_ / "adjacency_offsets.npy"));
    return message;
  }

  test::TemporaryFolder folder_;
  const fs::path store_ = folder_ / "s";
};

TEST_F(StoreFolder, AStoreWithItsPartitionsIsReplaced) {
  write(store_ / "partitions/p");
  write(store_ / "partitions/p/aggregated/mean");
  write(store_ / "cache/aggregated-mean");
  put(temporary_sibling("partitions/left").string());
  put("partitions/p/meta.json", "{ \"format\": \"clustergcn-store\", damaged");
  EXPECT_NO_THROW(write(store_));
  EXPECT_FALSE(fs::exists(store_ / "partitions"));
}

TEST_F(StoreFolder, AnythingElseInItStaysAndIsNamed) {
  for (const char* foreign : {"thesis.txt", "predictions.npy", "partitions/notes", "runs/r/config.toml",
                              "cache/aggregated-mean/mine", "partitions/p/thesis"}) {
    if (std::string(foreign).starts_with("partitions/p/")) write(store_ / "partitions/p");
    put(foreign);
    EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("is not part of the graph store"), HasSubstr("s/")));
    EXPECT_TRUE(fs::exists(store_ / foreign));
    for (const char* folder : {"partitions", "cache", "runs"}) fs::remove_all(store_ / folder);
    fs::remove(store_ / foreign);
  }
}

TEST_F(StoreFolder, WhatIsNoStoreStays) {
  put("meta.json", "{\"format\": \"other\", \"arrays\": {}}");
  EXPECT_THAT(refusal(), HasSubstr("is not a graph store, and --force replaces nothing else"));
  fs::remove(store_ / "meta.json");
  EXPECT_THAT(refusal(), HasSubstr("is not a graph store"));
  fs::remove_all(store_);
  std::ofstream(store_) << "thesis";
  EXPECT_THAT(test::message_of<Error>([&] { write(store_); }), HasSubstr("is not a directory"));
  EXPECT_EQ(read_text_file(store_), "thesis");
}

}  // namespace
}  // namespace cgcn
