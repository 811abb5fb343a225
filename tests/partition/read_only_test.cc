// Stores of others, which cannot be written to: what is derived from them is kept in the user's cache.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "partition/partition.h"
#include "support.h"

namespace cgcn {
namespace {

using test::random_dataset;
using test::TemporaryFolder;

// Root may write everywhere: it works as another user.
class AsUser {
 public:
  AsUser() {
    if (::geteuid() == 0) was_root_ = ::seteuid(65534) == 0;
  }
  ~AsUser() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool was_root_ = false;
};

std::set<fs::path> files_in(const fs::path& folder) {
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) files.insert(entry.path());
  return files;
}

class ReadOnlyStore : public testing::Test {
 protected:
  ReadOnlyStore() {
    write_store(folder_ / "s", random_dataset(5), StagedDirectory::Existing::kReplace);
    fs::create_directory(cache_);
    ::chmod(folder_.path().c_str(), 0755);
    ::chmod(cache_.c_str(), 0777);
    ::setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }
  ~ReadOnlyStore() override {
    ::unsetenv("XDG_CACHE_HOME");
    protect(0755);
  }
  void protect(mode_t mode) {
    ::chmod((folder_ / "s").c_str(), mode);
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "s", ignored))
      if (entry.is_directory()) ::chmod(entry.path().c_str(), mode);
  }

  TemporaryFolder folder_;
  fs::path cache_ = folder_ / "cache";
  PartitionOptions options_ = [] {
    PartitionOptions options;
    options.parts = 3;
    options.method = PartitionMethod::kRandom;
    options.transductive = true;
    return options;
  }();
};

TEST_F(ReadOnlyStore, HasItsPartitionsAndProductsInTheUsersCache) {
  protect(0555);
  const auto before = files_in(folder_ / "s");
  const AsUser user;
  const Store store(folder_ / "s");
  const Normalisation mean{NormalisationKind::kMean};
  const fs::path kept = cache_ / "clustergcn" / store.dataset().content_hash;

  const PartitionResult made = ensure_partition(store, options_), found = ensure_partition(store, options_);
  EXPECT_FALSE(made.reused);
  EXPECT_TRUE(found.reused);
  EXPECT_EQ(found.layout.path.parent_path(), kept / "partitions");
  aggregated_features(found.layout, mean, UINT64_MAX);
  EXPECT_TRUE(fs::exists(found.layout.path / "aggregated" / "mean"));
  aggregated_features(store, mean, UINT64_MAX);
  EXPECT_TRUE(fs::exists(kept / "cache" / "aggregated-mean"));
  EXPECT_EQ(files_in(folder_ / "s"), before);
}

TEST_F(ReadOnlyStore, GivesThePartitionThatItHas) {
  ensure_partition(Store(folder_ / "s"), options_);
  protect(0555);
  const AsUser user;
  const Store store(folder_ / "s");
  const PartitionResult found = ensure_partition(store, options_);
  EXPECT_TRUE(found.reused);
  EXPECT_EQ(found.layout.path.parent_path(), folder_ / "s" / "partitions");
  // The product beside it is new, and goes to the cache.
  const Normalisation mean{NormalisationKind::kMean};
  aggregated_features(found.layout, mean, UINT64_MAX);
  EXPECT_TRUE(fs::exists(cache_ / "clustergcn" / found.layout.data.content_hash / "aggregated" / "mean"));
}

TEST(CacheFolder, IsTheUsers) {
  const char* home = std::getenv("HOME");
  const std::string before = home != nullptr ? home : "";
  ::setenv("XDG_CACHE_HOME", "/some/cache", 1);
  EXPECT_EQ(cache_folder(), "/some/cache/clustergcn");
  ::setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(cache_folder(), "/home/someone/.cache/clustergcn");
  ::unsetenv("HOME");
  EXPECT_EQ(cache_folder().parent_path(), scratch_folder());
  ::unsetenv("XDG_CACHE_HOME");
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace cgcn
