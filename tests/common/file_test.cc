#include "common/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>

#include "common/error.h"
#include "support.h"

namespace cgcn {
namespace {

using test::message_of;

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

// Makes writes beyond `bytes` fail, as a full disk does, for as long as it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST(MappedFile, GivesTheBytes) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "f") << "hello";
  EXPECT_EQ(MappedFile(folder / "f").text(), "hello");
  std::ofstream(folder / "empty").flush();
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
  MappedFile(folder / "empty").release(0, 100);
}

TEST(MappedFile, ReleasedBytesReadTheSameAgain) {
  const test::TemporaryFolder folder;
  const std::string text(100'000, 'x');
  std::ofstream(folder / "f") << text;
  const MappedFile file(folder / "f");
  file.release(0, text.size());
  file.release(5'000, SIZE_MAX / 2);
  EXPECT_EQ(file.text(), text);
}

TEST(MappedFile, SaysWhatIsNotAFile) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(message_of<Error>([&] { MappedFile file(folder / "f"); }), (folder / "f").string() + ": no such file");
  EXPECT_EQ(message_of<Error>([&] { MappedFile file(folder.path()); }),
            folder.path().string() + ": is not a regular file");
}

TEST(OutputFile, WritesSmallAndLargePiecesInOrder) {
  const test::TemporaryFolder folder;
  std::string expected;
  OutputFile file = OutputFile::staged(folder / "f");
  for (int i = 0; i < 60; ++i) {
    const std::string piece(static_cast<size_t>(i) * i * 700, static_cast<char>('a' + i % 26));
    file.write(piece);
    expected += piece;
  }
  EXPECT_EQ(file.size(), expected.size());
  file.write_at(3, "XYZ", 3);
  expected.replace(3, 3, "XYZ");
  file.write("end");
  expected += "end";
  EXPECT_FALSE(fs::exists(folder / "f")) << "it appears only when whole";
  file.commit();
  EXPECT_EQ(read_text_file(folder / "f"), expected);
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(OutputFile, WithoutCommitNothingChanges) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  { OutputFile::staged(folder / "f").write("new"); }
  EXPECT_EQ(read_text_file(folder / "f"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(OutputFile, AFullDiskIsNamedAndLeavesTheOldFile) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  const std::string text(3 << 20, 'x');
  {
    const FileSizeLimit limit(1 << 16);
    const std::string message = message_of<Error>([&] { write_file_atomically(folder / "f", text); });
    EXPECT_NE(message.find((folder / "f").string() + ": cannot write: "), std::string::npos) << message;
  }
  EXPECT_EQ(read_text_file(folder / "f"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(OutputFile, NoSpaceLeftComesWithAHint) {
  const test::TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder / "full");  // every write to it fails as on a full disk
  const std::string message = message_of<Error>([&] {
    OutputFile file(folder / "full");
    file.write("x");
    file.commit();
  });
  EXPECT_EQ(message, (folder / "full").string() +
                         ": cannot write: No space left on device\nhint: free some disk "
                         "space, or choose a place on another disk");
}

TEST(OutputFile, APlaceThatCannotBeWrittenIsNamed) {
  const test::TemporaryFolder folder;
  const fs::path target = folder / "missing/f";
  EXPECT_EQ(message_of<Error>([&] { write_file_atomically(target, "x"); }),
            target.string() + ": cannot write: No such file or directory");
  EXPECT_NE(message_of<Error>([&] { write_file_atomically("/proc/f", "x"); }).find("/proc/f: cannot write"),
            std::string::npos);
}

TEST(StagedDirectory, AppearsWholeOrNotAtAll) {
  const test::TemporaryFolder folder;
  {
    StagedDirectory staged(folder / "a/b/store/", StagedDirectory::Existing::kRefuse);
    std::ofstream(staged.path() / "x") << "1";
    EXPECT_FALSE(fs::exists(folder / "a/b/store"));
    staged.commit();
  }
  EXPECT_EQ(read_text_file(folder / "a/b/store/x"), "1");
  { StagedDirectory abandoned(folder / "a/b/other", StagedDirectory::Existing::kRefuse); }
  EXPECT_EQ(entries_in(folder / "a/b"), 1u);
}

TEST(OutputFile, ALinkStaysAndWhatItPointsAtIsReplaced) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "inner");
  fs::create_symlink("inner/f", folder / "link");  // to nothing yet
  write_file_atomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text_file(folder / "inner/f"), "new");
  write_file_atomically(folder / "link", "newer");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text_file(folder / "inner/f"), "newer");
  EXPECT_EQ(entries_in(folder / "inner"), 1u);
}

TEST(OutputFile, ADeviceIsWrittenToAndStaysOne) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0644), 0);
  const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomically(folder / "pipe", "hello");
  { OutputFile::staged(folder / "pipe").write("not committed"); }
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 5);
  EXPECT_STREQ(text, "hello");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  write_file_atomically("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(message_of<Error>([&] { write_file_atomically(folder.path(), "x"); }),
            folder.path().string() + ": is a directory");
}

TEST(AppendToFile, IsWholeOrNotAtAll) {
  const test::TemporaryFolder folder;
  append_to_file(folder / "f", "one\n");
  append_to_file(folder / "f", "two\n");
  EXPECT_EQ(read_text_file(folder / "f"), "one\ntwo\n");
  {
    const FileSizeLimit limit(10);  // half of it is written before the rest fails
    EXPECT_EQ(message_of<Error>([&] { append_to_file(folder / "f", "three\n"); }),
              (folder / "f").string() + ": cannot write: File too large");
  }
  EXPECT_EQ(read_text_file(folder / "f"), "one\ntwo\n");
}

TEST(LiesWithin, GoesByWhatNamesStandFor) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "a/b");
  fs::create_directories(folder / "ab");
  fs::create_symlink("a/b", folder / "link");
  EXPECT_TRUE(lies_within(folder / "a", folder / "a"));
  EXPECT_TRUE(lies_within(folder / "link", folder / "a"));
  EXPECT_TRUE(lies_within(folder / "a/b/../b", folder / "a/b"));
  EXPECT_FALSE(lies_within(folder / "ab", folder / "a"));
  EXPECT_FALSE(lies_within(folder / "a", folder / "a/b"));
  EXPECT_FALSE(lies_within(folder / "missing", folder / "a"));
}

TEST(StagedDirectory, ReplacesOnlyWhatItMayAndOnlyAtTheEnd) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "s");
  std::ofstream(folder / "s/old") << "1";
  EXPECT_EQ(message_of<Error>([&] { StagedDirectory(folder / "s", StagedDirectory::Existing::kRefuse); }),
            (folder / "s").string() + ": already exists\nhint: another name, or --force to replace it");
  EXPECT_THROW(StagedDirectory(folder / "s", StagedDirectory::Existing::kReplace), Error) << "nobody said it may";
  bool may = true;
  const auto may_replace = [&](const fs::path& path) {
    if (!may) throw Error("may not", path.string());
  };
  const auto replace = [&](const std::string& name) {
    auto staged = std::make_unique<StagedDirectory>(folder / name, StagedDirectory::Existing::kReplace, may_replace);
    std::ofstream(staged->path() / "new") << "2";
    return staged;
  };
  auto late = replace("s");
  may = false;  // someone put a file there meanwhile
  EXPECT_EQ(message_of<Error>([&] { late->commit(); }), (folder / "s").string() + ": may not");
  late.reset();
  EXPECT_TRUE(fs::exists(folder / "s/old"));
  may = true;
  auto staged = replace("s");
  EXPECT_TRUE(fs::exists(folder / "s/old"));
  staged->commit();
  staged.reset();
  EXPECT_FALSE(fs::exists(folder / "s/old"));
  EXPECT_TRUE(fs::exists(folder / "s/new"));
  EXPECT_EQ(entries_in(folder.path()), 1u);

  fs::create_directory(folder / "empty");  // holds nothing to lose
  may = false;
  replace("empty")->commit();
  EXPECT_TRUE(fs::exists(folder / "empty/new"));
  std::ofstream(folder / "file") << "x";
  may = true;
  EXPECT_THROW(replace("file"), Error);
  fs::create_directory_symlink("empty", folder / "link");
  replace("link")->commit();
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::exists(folder / "empty/new"));
}

TEST(StaleTemporaries, WhatIsHeldStaysWhateverTheProcessIsCalled) {
  const test::TemporaryFolder folder;
  const fs::path left = temporary_sibling(folder / "f"), left_folder = temporary_sibling(folder / "store");
  std::ofstream(left) << "x";
  fs::create_directories(left_folder / "inner");
  for (const fs::path& kept : {folder / "notes.tmp-20240101", folder / "f.clustergcn-00000000-1-0.tmp",
                               fs::path(left.string() + "x"), folder / "plain"})
    std::ofstream(kept) << "x";
  const StagedDirectory held(folder / "held", StagedDirectory::Existing::kRefuse);
  const OutputFile file = OutputFile::staged(folder / "held-file");  // takes away what is left, too
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(left_folder));
  EXPECT_EQ(entries_in(folder.path()), 6u);
  // Who cleans up may not see this process at all: one in a container of its own, where all numbers are others.
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inner = ::fork();
    if (inner == 0) {
      remove_stale_temporaries(folder.path());
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WEXITSTATUS(status));
  }
  int status = 0;
  ::waitpid(outer, &status, 0);
  EXPECT_EQ(entries_in(folder.path()), 6u);
  EXPECT_TRUE(fs::exists(held.path()));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "a process namespace cannot be made here";
}

TEST(StaleTemporaries, ThoseOfOtherHostsGoAfterSevenDaysWithoutAChange) {
  const test::TemporaryFolder folder;
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24 * 8);
  const fs::path file = folder / "f.clustergcn-00000000-1-0.tmp", fresh = folder / "f.clustergcn-00000000-1-1.tmp",
                 store = folder / "s.clustergcn-00000000-1-2.tmp", busy = folder / "s.clustergcn-00000000-1-3.tmp",
                 other = folder / "s.clustergcn-notes.tmp";
  for (const fs::path& path : {file, fresh, other}) std::ofstream(path) << "x";
  for (const fs::path& path : {store, busy}) {
    fs::create_directories(path);
    std::ofstream(path / "array.npy") << "x";
  }
  for (const fs::path& path : {file, store / "array.npy", store, busy, other}) fs::last_write_time(path, long_ago);
  remove_stale_temporaries(folder.path());
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(store));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(fs::exists(busy));  // something in it is still being written
  EXPECT_TRUE(fs::exists(other));
}

TEST(StaleTemporaries, WhatAKilledProcessLeftGoesAtTheNextStart) {
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    StagedDirectory staged(folder / "s", StagedDirectory::Existing::kRefuse);
    std::ofstream(staged.path() / "x") << "half" << std::flush;
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(entries_in(folder.path()), 1u) << "the child should have left its staging folder";
  StagedDirectory staged(folder / "s", StagedDirectory::Existing::kRefuse);
  staged.commit();
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(ReadTextFile, RefusesWhatIsTooLong) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "f") << "12345";
  EXPECT_EQ(read_text_file(folder / "f", 5), "12345");
  EXPECT_THROW(read_text_file(folder / "f", 4), Error);
}

TEST(FreeDiskSpace, AsksTheNearestFolderThatExists) {
  const test::TemporaryFolder folder;
  const uint64_t space = free_disk_space(folder / "not/there/yet");
  EXPECT_GT(space, 0u);
  EXPECT_LT(space, UINT64_MAX);
}

}  // namespace
}  // namespace cgcn
