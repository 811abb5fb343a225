// What tests share: a folder that goes away, the real graphs, small random graphs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/random.h"

namespace cgcn::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory if there is such a place: every store that is written syncs its files, and tests write hundreds.
    std::error_code error;
    const fs::path place = fs::is_directory("/dev/shm", error) ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string pattern = (place / "cgcn-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// The folder of real graphs, or nothing if this machine does not have it: CLUSTERGCN_DATA, else ../shared/data.
inline std::optional<fs::path> data_folder() {
  const char* named = std::getenv("CLUSTERGCN_DATA");
  const fs::path folder = named != nullptr ? fs::path(named) : fs::path(CGCN_SOURCE_DIR) / "../shared/data";
  std::error_code error;
  return fs::is_directory(folder, error) ? std::optional(folder) : std::nullopt;
}

// The message of the Error that the call throws; a test failure where it throws none.
template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace cgcn::test

#define CGCN_DATA_OR_SKIP(variable)                                                                   \
  const auto variable##_found = ::cgcn::test::data_folder();                                          \
  if (!variable##_found) GTEST_SKIP() << "real graphs are not on this machine (set CLUSTERGCN_DATA)"; \
  const ::cgcn::fs::path variable = *variable##_found
