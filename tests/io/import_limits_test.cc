// What an import does when the machine sets limits: memory stays near the size of the store, a full disk and a
// read-only one give one clear message, and nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "common/memory.h"
#include "common/threads.h"
#include "io_support.h"

namespace cgcn {
namespace {

constexpr int kSkipped = 77;

// Runs the work in a process of its own, whose exit status is what it returns: its memory and mounts are its own.
int run_apart(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    set_thread_count(1);  // other threads stay behind in the parent
    try {
      status = work();
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "%s\n", problem.what());
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A small file system of its own at `folder`, seen by this process alone. False if the kernel does not allow it.
bool mount_small_disk(const fs::path& folder, const char* size) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("tmpfs", folder.c_str(), "tmpfs", 0, size) == 0;
}

void write_large(const fs::path& folder, uint64_t nodes, uint64_t edges, uint64_t columns) {
  fs::create_directories(folder);
  Random random(5, Purpose::kTest);
  const auto write = [&](const char* name, const char* dtype, std::vector<uint64_t> shape, auto&& value) {
    std::ofstream file(folder / name, std::ios::binary);
    file << make_npy_header(dtype, shape);
    for (uint64_t i = 0; i < shape[0] * shape[1]; ++i) {
      const auto number = value(i);
      file.write(reinterpret_cast<const char*>(&number), sizeof number);
    }
  };
  write("edge_index.npy", "<i8", {2, edges},
        [&](uint64_t) { return static_cast<int64_t>(random.below(static_cast<uint32_t>(nodes))); });
  write("features.npy", "<f8", {nodes, columns}, [](uint64_t i) { return static_cast<double>(i % 1000); });
}

TEST(ImportLimits, MemoryIsNearTheSizeOfTheStore) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  const test::TemporaryFolder folder;
  write_large(folder / "g", 200'000, 2'000'000, 64);  // 134 MB of input, of which the store keeps half
  const int status = run_apart([&] {
    reset_peak_rss();
    ImportReport report;
    StoreWriter writer(folder / "s", StagedDirectory::Existing::kRefuse);
    choose_reader(folder / "g", {}).read(folder / "g", {}, writer, report);
    writer.finish("large");
    const uint64_t peak = memory_figures().peak_rss;
    const uint64_t store = Store(folder / "s", Verify::kShapesOnly).bytes_on_disk();
    constexpr uint64_t kFixed = uint64_t{32} << 20;
    std::printf("peak %.1f MB for a store of %.1f MB\n", static_cast<double>(peak) / 1e6,
                static_cast<double>(store) / 1e6);
    std::fflush(stdout);
    return peak < store * 13 / 10 + kFixed ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

void expect_refusal(const char* mount_options, const std::string& expected, bool read_only) {
  const test::TemporaryFolder folder;
  write_large(folder / "g", 20'000, 200'000, 16);
  fs::create_directories(folder / "disk");
  const int status = run_apart([&] {
    if (!mount_small_disk(folder / "disk", mount_options)) return kSkipped;
    if (read_only && ::mount(nullptr, (folder / "disk").c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return kSkipped;
    const std::string message = test::message_of<Error>([&] { test::import(folder / "g", folder / "disk" / "store"); });
    std::printf("%s\n", message.c_str());
    std::fflush(stdout);
    if (message.find(expected) == std::string::npos) return 1;
    return fs::is_empty(folder / "disk") ? 0 : 2;
  });
  if (status == kSkipped) GTEST_SKIP() << "this machine does not let a test mount a disk of its own";
  EXPECT_EQ(status, 0) << (status == 1 ? "another message" : status == 2 ? "something was left behind" : "failed");
}

TEST(ImportLimits, AFullDiskIsSaidAndNothingIsLeft) {
  expect_refusal("size=1m", "cannot write: No space left on device\nhint: free some disk space", false);
}

TEST(ImportLimits, AReadOnlyDiskIsSaid) {
  expect_refusal("size=8m", "cannot write: Read-only file system\nhint: choose a place that you may write to", true);
}

TEST(ImportLimits, AnExistingStoreIsKeptWhereTheNewOneFails) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "g");
  test::write_npy<int32_t>(folder / "g" / "edge_index.npy", {0, 1}, {2, 1});
  const std::string before = test::import(folder / "g", folder / "s").content_hash;
  test::write_npy<int32_t>(folder / "g" / "edge_index.npy", {0, -1}, {2, 1});
  EXPECT_THROW(test::import(folder / "g", folder / "s"), Error);
  EXPECT_EQ(open_dataset(folder / "s").content_hash, before);
}

}  // namespace
}  // namespace cgcn
