#include "common/mapping_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>

#include "common/file.h"
#include "support.h"

namespace cgcn {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizersHandleSignals = true;
#else
constexpr bool kSanitizersHandleSignals = false;
#endif

int first_byte_beyond(const MappedFile& file) { return std::to_integer<int>(file.bytes()[file.bytes().size() - 1]); }

TEST(MappingFaults, AFileCutShortWhileMappedIsNamed) {
  if (kSanitizersHandleSignals) GTEST_SKIP() << "the sanitizer handles SIGBUS";
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "array.npy", std::string(1 << 20, 'x'));
  const auto touch = [&] {
    install_mapping_fault_handler();
    const MappedFile other(folder / "array.npy"), file(folder / "array.npy");
    fs::resize_file(folder / "array.npy", 10);
    std::_Exit(first_byte_beyond(file) == 0 ? 3 : 4);
  };
  EXPECT_EXIT(touch(), testing::ExitedWithCode(1), "array.npy: was cut short, or cannot be read, while it was in use");
}

TEST(MappingFaults, OtherFaultsAreLeftAlone) {
  if (kSanitizersHandleSignals) GTEST_SKIP() << "the sanitizer handles SIGBUS";
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "array.npy", std::string(1 << 20, 'x'));
  const auto raise_elsewhere = [&] {
    install_mapping_fault_handler();
    const MappedFile file(folder / "array.npy");
    ::raise(SIGBUS);
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(raise_elsewhere(), testing::KilledBySignal(SIGBUS), "^$");
}

}  // namespace
}  // namespace cgcn
