#include "common/mapping_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <csignal>

#include "common/error.h"
#include "common/file.h"
#include "process/signals.h"
#include "support.h"

namespace cgcn {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizersHandleSignals = true;
#else
constexpr bool kSanitizersHandleSignals = false;
#endif

class MappingFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitizersHandleSignals) GTEST_SKIP() << "the sanitizer handles SIGBUS";
    write_file_atomically(file_, std::string(1 << 20, 'x'));
  }
  const test::TemporaryFolder folder_;
  const fs::path file_ = folder_ / "array.npy";
};

TEST_F(MappingFaults, AFileCutShortWhileMappedIsNamed) {
  const auto touch = [&] {
    install_mapping_fault_handler();
    const MappedFile other(file_), file(file_);
    fs::resize_file(file_, 10);
    std::_Exit(std::to_integer<int>(file.bytes().back()));
  };
  EXPECT_EXIT(touch(), testing::ExitedWithCode(1), "array.npy: was cut short, or cannot be read, while it was in use");
}

TEST_F(MappingFaults, OtherFaultsAreLeftAlone) {
  const auto raise_elsewhere = [&] {
    install_mapping_fault_handler();
    const MappedFile file(file_);
    ::raise(SIGBUS);
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(raise_elsewhere(), testing::KilledBySignal(SIGBUS), "^$");
}

TEST(Mappings, AFileThatIsWrittenToIsNamedAndOneThatIsReplacedIsNot) {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "array.npy";
  write_file_atomically(path, std::string(4096, 'x'));
  {
    const MappedFile file(path);
    check_mappings();
    write_file_atomically(path, std::string(100, 'y'));  // another file of that name
    check_mappings();
  }
  const MappedFile file(path);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_THAT(test::message_of<Error>([] { check_mappings(); }), testing::HasSubstr("array.npy: was changed while"));
  fs::resize_file(path, 10);
  EXPECT_THAT(test::message_of<Error>([] { check_mappings(); }), testing::HasSubstr("array.npy: was cut short while"));
}

}  // namespace
}  // namespace cgcn
