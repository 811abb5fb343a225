#include "graph/store.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "graph/graph_builder.h"
#include "support.h"

namespace cgcn {
namespace {

Dataset small_dataset() {
  EdgeList edges;
  for (const auto& [u, v] : std::vector<std::pair<NodeId, NodeId>>{{0, 1}, {1, 0}, {1, 2}, {2, 2}, {3, 1}, {3, 1}})
    edges.add(u, v);
  Dataset dataset;
  dataset.name = "small";
  dataset.graph = build_graph(5, edges, {}, nullptr);
  dataset.features = FeatureMatrix::dense(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 2);
  dataset.labels = Labels::single(std::vector<int32_t>{0, 1, 2, 0, -1}, 3);
  dataset.split = std::vector<uint8_t>{0, 0, 1, 2, 255};
  dataset.class_names = {"a", "b", "c"};
  return dataset;
}

TEST(Store, RoundTrips) {
  const test::TemporaryFolder folder;
  const Dataset written = small_dataset();
  write_store(folder / "s", written, StagedDirectory::Existing::kRefuse);
  const Dataset read = open_dataset(folder / "s");
  EXPECT_EQ(read.name, "small");
  EXPECT_EQ(read.num_nodes(), 5u);
  EXPECT_EQ(read.graph.num_edges(), 3u);
  EXPECT_EQ(std::vector(read.graph.targets().begin(), read.graph.targets().end()),
            (std::vector<NodeId>{1, 0, 2, 3, 1, 1}));
  EXPECT_EQ(read.features.dense_row(4)[1], 9);
  EXPECT_EQ(read.labels.class_of(4), -1);
  EXPECT_EQ(read.class_name(2), "c");
  EXPECT_EQ(read.split_sizes(), (std::array<uint64_t, 3>{2, 1, 1}));
}

TEST(Store, EqualContentHasEqualHashAndIdsDoNotCount) {
  const test::TemporaryFolder folder;
  Dataset dataset = small_dataset();
  write_store(folder / "a", dataset, StagedDirectory::Existing::kRefuse);
  dataset.ids = NodeIds::integers(std::vector<int64_t>{5, 6, 7, 8, 9});
  write_store(folder / "b", dataset, StagedDirectory::Existing::kRefuse);
  dataset.split = std::vector<uint8_t>{0, 0, 1, 1, 255};
  write_store(folder / "c", dataset, StagedDirectory::Existing::kRefuse);
  const Dataset a = open_dataset(folder / "a"), b = open_dataset(folder / "b"), c = open_dataset(folder / "c");
  EXPECT_EQ(a.content_hash, b.content_hash);
  EXPECT_EQ(a.graph_hash, c.graph_hash);
  EXPECT_NE(a.content_hash, c.content_hash);
}

TEST(Store, KeepsNamesAndEncodingOfFeatureColumns) {
  const test::TemporaryFolder folder;
  Dataset dataset = small_dataset();
  write_store(folder / "none", dataset, StagedDirectory::Existing::kRefuse);
  dataset.encoding = {
      {.name = "age", .missing = MissingValues::kIndicator, .fill = 0.1f, .indicator = true, .categories = {}}};
  dataset.feature_names = feature_names(dataset.encoding);
  write_store(folder / "named", dataset, StagedDirectory::Existing::kRefuse);
  const Dataset none = open_dataset(folder / "none"), named = open_dataset(folder / "named");
  EXPECT_TRUE(none.feature_names.empty() && none.encoding.empty());
  EXPECT_EQ(named.feature_names, (std::vector<std::string>{"age", "age (missing)"}));
  EXPECT_EQ(named.encoding, dataset.encoding);
  EXPECT_EQ(none.content_hash, named.content_hash);
  dataset.encoding = {{.name = "plan", .one_hot = true, .categories = {"a", "b"}}};
  dataset.feature_names = {"plan=a", "plan=c"};
  write_store(folder / "wrong", dataset, StagedDirectory::Existing::kRefuse);
  EXPECT_NE(test::message_of<Error>([&] { open_dataset(folder / "wrong"); }).find("names of the feature columns"),
            std::string::npos);
}

TEST(Store, WhatIsAppendedBehindIsWrittenInTurn) {
  const test::TemporaryFolder folder;
  std::vector<float> values(300'000);
  std::iota(values.begin(), values.end(), 0.0f);
  const std::span<const float> all(values);
  ArrayWriter plain(folder / "plain.npy", "<f4", sizeof(float), 0),
      behind(folder / "behind.npy", "<f4", sizeof(float), 0);
  plain.append(all);
  for (const auto& [begin, length] : {std::pair<size_t, size_t>{0, 100'000}, {100'000, 1}, {100'001, 149'999}})
    behind.append_behind(all.subspan(begin, length));
  behind.append(all.subspan(250'000));
  EXPECT_EQ(plain.finish(), behind.finish());
  EXPECT_EQ(read_text_file(folder / "plain.npy"), read_text_file(folder / "behind.npy"));

  fs::create_symlink("/dev/full", folder / "full");
  ArrayWriter full(folder / "full", "<f4", sizeof(float), 0);
  const std::string message = test::message_of<Error>([&] {
    full.append_behind(all);
    full.finish();
  });
  EXPECT_NE(message.find("No space left"), std::string::npos) << message;
}

TEST(Store, EveryTruncatedOrAlteredFileIsDetectedAndNamed) {
  const test::TemporaryFolder folder;
  write_store(folder / "s", small_dataset(), StagedDirectory::Existing::kRefuse);
  for (const auto& entry : fs::directory_iterator(folder / "s")) {
    const std::string whole = read_text_file(entry.path());
    const auto put = [&](const std::string& text) { std::ofstream(entry.path(), std::ios::binary) << text; };
    for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 40) {
      std::string altered = whole;
      altered[at] = static_cast<char>(altered[at] ^ 0x21);
      put(altered);
      EXPECT_THROW(Store(folder / "s"), Error) << entry.path() << " altered at " << at;
      put(whole.substr(0, at));
      EXPECT_THROW(Store(folder / "s"), Error) << entry.path() << " cut at " << at;
    }
    fs::remove(entry.path());
    const std::string message = test::message_of<Error>([&] { Store store(folder / "s"); });
    EXPECT_NE(message.find(entry.path().filename().string()), std::string::npos) << message;
    put(whole);
  }
  EXPECT_NO_THROW(Store(folder / "s"));
}

// A store may be whole and still be put together wrongly: what the program indexes with is checked too.
TEST(Store, ImpossibleContentIsRefused) {
  const test::TemporaryFolder folder;
  Dataset dataset = small_dataset();
  dataset.split = std::vector<uint8_t>{0, 0, 1, 200, 255};
  write_store(folder / "split", dataset, StagedDirectory::Existing::kRefuse);
  EXPECT_NE(test::message_of<Error>([&] { Store store(folder / "split"); }).find("split.npy"), std::string::npos);
  dataset = small_dataset();
  dataset.labels = Labels::single(std::vector<int32_t>{0, 1, 2, 3, -1}, 3);
  write_store(folder / "labels", dataset, StagedDirectory::Existing::kRefuse);
  EXPECT_NE(test::message_of<Error>([&] { Store store(folder / "labels"); }).find("labels.npy"), std::string::npos);
}

TEST(Store, AnExistingOneIsKeptUnlessReplacementIsAsked) {
  const test::TemporaryFolder folder;
  Dataset dataset = small_dataset();
  write_store(folder / "s", dataset, StagedDirectory::Existing::kRefuse);
  dataset.name = "other";
  EXPECT_THROW(write_store(folder / "s", dataset, StagedDirectory::Existing::kRefuse), Error);
  EXPECT_EQ(open_dataset(folder / "s").name, "small");
  write_store(folder / "s", dataset, StagedDirectory::Existing::kReplace);
  EXPECT_EQ(open_dataset(folder / "s").name, "other");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "something temporary was left";
}

}  // namespace
}  // namespace cgcn
