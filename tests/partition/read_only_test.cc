// Stores of others, which cannot be written to: what is derived from them is kept in the user's cache.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "partition/partition.h"
#include "support.h"

namespace cgcn {
namespace {

using test::random_dataset;
using test::TemporaryFolder;

// Root may write everywhere: it works as another user, if there is one.
class AsUser {
 public:
  AsUser() : was_root_(::geteuid() == 0) { works_ = !was_root_ || ::seteuid(65534) == 0; }
  ~AsUser() {
    if (was_root_ && works_ && ::seteuid(0) != 0) std::abort();
  }
  bool works() const { return works_; }

 private:
  bool was_root_, works_;
};

// A variable of the environment for as long as this lives; null: none.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
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
  }
  ~ReadOnlyStore() override { protect(0755); }
  void protect(mode_t mode) {
    ::chmod((folder_ / "s").c_str(), mode);
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "s", ignored))
      ::chmod(entry.path().c_str(), entry.is_directory() ? mode : 0644);
  }
  static fs::path folder_of(const Store& store) {
    return *cache_folder() / (store.dataset().content_hash + "-" + store.meta().at("checksum").get<std::string>());
  }

  TemporaryFolder folder_;
  fs::path cache_ = folder_ / "cache";
  Variable variable_{"XDG_CACHE_HOME", cache_.c_str()};
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
  if (!user.works()) GTEST_SKIP();
  const Store store(folder_ / "s");
  const Normalisation mean{NormalisationKind::kMean};
  const fs::path kept = folder_of(store);

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
  const Normalisation mean{NormalisationKind::kMean};
  const Store own(folder_ / "s");
  aggregated_features(ensure_partition(own, options_).layout, mean, UINT64_MAX);
  protect(0555);
  const AsUser user;
  if (!user.works()) GTEST_SKIP();
  const Store store(folder_ / "s");
  const PartitionResult found = ensure_partition(store, options_);
  EXPECT_TRUE(found.reused);
  EXPECT_EQ(found.layout.path.parent_path(), folder_ / "s" / "partitions");
  aggregated_features(found.layout, mean, UINT64_MAX);
  EXPECT_FALSE(fs::exists(folder_of(*found.layout.files) / "aggregated"));
  // Products that it does not have go to the cache, one of other rows among them.
  aggregated_features(found.layout, mean, UINT64_MAX, &found.layout.data.features);
  EXPECT_TRUE(fs::exists(folder_of(*found.layout.files) / "aggregated" / "mean-rows"));
  // And a partition that is made again.
  options_.replace = true;
  EXPECT_EQ(ensure_partition(store, options_).layout.path.parent_path(), folder_of(store) / "partitions");
}

TEST_F(ReadOnlyStore, IsNotTakenForAnotherOfTheSameContent) {
  Dataset renamed = random_dataset(5);
  std::vector<int64_t> ids(renamed.num_nodes());
  std::iota(ids.begin(), ids.end(), 1000);
  renamed.ids = NodeIds::integers(std::move(ids));
  write_store(folder_ / "other", renamed, StagedDirectory::Existing::kReplace);
  const Store one(folder_ / "s"), other(folder_ / "other");
  EXPECT_EQ(one.dataset().content_hash, other.dataset().content_hash);
  EXPECT_NE(folder_of(one), folder_of(other));
}

TEST(CacheFolder, IsTheUsersAlone) {
  TemporaryFolder folder;
  const fs::path home = folder / "home", scratch = folder / "scratch";
  fs::create_directory(home);
  fs::create_directory(scratch);
  const Variable temporary("TMPDIR", scratch.c_str()), user("HOME", home.c_str());
  {
    const Variable cache("XDG_CACHE_HOME", (folder / "cache").c_str());
    EXPECT_EQ(cache_folder(), folder / "cache" / "clustergcn");
    EXPECT_EQ(fs::status(folder / "cache" / "clustergcn").permissions(), fs::perms::owner_all);
  }
  const Variable cache("XDG_CACHE_HOME", "relative");  // to be ignored
  EXPECT_EQ(cache_folder(), home / ".cache" / "clustergcn");
  // One that others can write to, or that is none, is not taken.
  ::chmod((home / ".cache" / "clustergcn").c_str(), 0777);
  EXPECT_EQ(cache_folder()->parent_path(), scratch);
  fs::remove(*cache_folder());
  fs::create_symlink(home, scratch / ("clustergcn-" + std::to_string(::geteuid())));
  EXPECT_EQ(cache_folder(), std::nullopt);
}

}  // namespace
}  // namespace cgcn
