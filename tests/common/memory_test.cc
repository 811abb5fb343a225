#include "common/memory.h"

#include <gtest/gtest.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/file.h"
#include "support.h"

namespace cgcn {
namespace {

TEST(Bytes, AreParsedAsPeopleWriteThem) {
  const auto parse = [](const char* text) { return parse_bytes(text, "--memory"); };
  EXPECT_EQ(parse("0"), 0u);
  EXPECT_EQ(parse("4096"), 4096u);
  EXPECT_EQ(parse("4096B"), 4096u);
  EXPECT_EQ(parse("1k"), 1024u);
  EXPECT_EQ(parse("2200M"), 2200ull << 20);
  EXPECT_EQ(parse("2G"), 2ull << 30);
  EXPECT_EQ(parse("2GB"), 2ull << 30);
  EXPECT_EQ(parse("1.5GiB"), 3ull << 29);
  EXPECT_EQ(parse("1T"), 1ull << 40);
}

TEST(Bytes, WhatIsNoSizeIsRefused) {
  for (const char* text :
       {"", "G", "-1", "-1G", "2X", "2GG", "2G ", " 2G", "nan", "inf", "1e30", "0x10", "2Gi B", "2bb"})
    EXPECT_EQ(test::message_of<Error>([&] { parse_bytes(text, "--memory"); }),
              fmt::format("--memory: '{}' is not a size\nhint: a number with K, M, G or T, such as 2G or 2200M", text));
}

TEST(Bytes, AreFormattedShort) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(123 << 20), "123 MiB");
  EXPECT_EQ(format_bytes(3ull << 29), "1.5 GiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(Memory, FiguresFollowWhatIsAllocatedAndMapped) {
  const MemoryFigures before = memory_figures();
  ASSERT_GT(before.rss, 0u);
  constexpr uint64_t kBytes = 64 << 20;
  {
    const Buffer<char> buffer(kBytes, 1);
    EXPECT_GE(memory_figures().anonymous, before.anonymous + kBytes / 2);
  }
  EXPECT_GE(memory_figures().peak_rss, before.rss + kBytes / 2) << "the peak remembers";

  const test::TemporaryFolder folder;
  write_file_atomically(folder / "f", std::string(kBytes, 'x'));
  const MappedFile file(folder / "f");
  uint64_t sum = 0;
  for (size_t i = 0; i < kBytes; i += 512) sum += static_cast<unsigned char>(file.text()[i]);
  EXPECT_EQ(sum, kBytes / 512 * 'x');
  const MemoryFigures mapped = memory_figures();
  EXPECT_GE(mapped.file_backed, before.file_backed + kBytes / 2);
  file.release(0, kBytes);
  EXPECT_LE(memory_figures().file_backed + kBytes / 2, mapped.file_backed);
}

TEST(Memory, TheMachineHasSomeAndLessIsAvailable) {
  EXPECT_GT(available_memory(), 0u);
  EXPECT_GE(total_memory(), available_memory());
}

TEST(Memory, ALimitOfAControlGroupLeavesThePageCacheOut) {
  const test::TemporaryFolder root;
  const auto write = [&](const fs::path& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    write_file_atomically(root / file, text);
  };
  write("proc/meminfo", "MemTotal:  8000 kB\nMemFree:  1000 kB\nMemAvailable:  6000 kB\n");
  EXPECT_EQ(total_memory(root.path()), 8000u << 10);
  EXPECT_EQ(available_memory(root.path()), 6000u << 10);
  const fs::path outer = "sys/fs/cgroup/user", inner = outer / "job";
  write("proc/self/cgroup", "1:cpu:/other\n0::/user/job\n");
  write(outer / "memory.max", "max\n");
  write(inner / "memory.max", "4096000\n");
  write(inner / "memory.current", "4000000\n");
  EXPECT_EQ(total_memory(root.path()), 4096000u);
  EXPECT_EQ(available_memory(root.path()), 96000u);
  write(inner / "memory.stat", "anon 900000\nfile 3000000\ninactive_file 2000000\nactive_file 1000000\n");
  EXPECT_EQ(available_memory(root.path()), 3096000u);
  write(outer / "memory.max", "2000000\n");  // a group around it
  write(outer / "memory.current", "1500000\n");
  EXPECT_EQ(total_memory(root.path()), 2000000u);
  EXPECT_EQ(available_memory(root.path()), 500000u);
  write("proc/self/cgroup", "0::/not/to/be/seen\n");
  write("sys/fs/cgroup/memory.max", "3000000\n");
  EXPECT_EQ(available_memory(root.path()), 3000000u);
}

TEST(Memory, ControlGroupsOfVersionOneCountToo) {
  const test::TemporaryFolder root;
  const auto write = [&](const fs::path& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    write_file_atomically(root / file, text);
  };
  write("proc/meminfo", "MemTotal:  8000 kB\nMemAvailable:  6000 kB\n");
  write("proc/self/cgroup", "5:devices:/\n4:cpu,memory:/user/job\n0::/\n");
  const fs::path outer = "sys/fs/cgroup/memory", inner = outer / "user/job";
  write(outer / "memory.limit_in_bytes", "9223372036854771712\n");  // none
  EXPECT_EQ(total_memory(root.path()), 8000u << 10);
  write(inner / "memory.limit_in_bytes", "4096000\n");
  write(inner / "memory.usage_in_bytes", "4000000\n");
  write(inner / "memory.stat", "inactive_file 7\ntotal_inactive_file 2000000\ntotal_active_file 1000000\n");
  EXPECT_EQ(total_memory(root.path()), 4096000u);
  EXPECT_EQ(available_memory(root.path()), 3096000u);
  write(outer / "memory.limit_in_bytes", "3000000\n");
  EXPECT_EQ(total_memory(root.path()), 3000000u);
  write("proc/self/cgroup", "4:memory:/not/to/be/seen\n");
  EXPECT_EQ(total_memory(root.path()), 3000000u);
}

TEST(Buffer, IsAlignedMovedAndRefusesTheImpossible) {
  Buffer<float> a(3, 1.5f);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % Buffer<float>::kAlignment, 0u);
  const float* where = a.data();
  Buffer<float> b = std::move(a);
  EXPECT_EQ(b.data(), where);
  EXPECT_EQ(b[2], 1.5f);
  b.reserve_discarding(2);
  EXPECT_EQ(b.size(), 3u) << "never shrinks";
  b.reserve_discarding(10);
  EXPECT_EQ(b.size(), 10u);
  EXPECT_THROW(Buffer<double>(SIZE_MAX / 4), std::bad_alloc);
}

}  // namespace
}  // namespace cgcn
