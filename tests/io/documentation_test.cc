// The lines of Python in docs/formats.md read a store as they are printed there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "io_support.h"

namespace cgcn {
namespace {

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  return ::pclose(pipe) == 0 ? output : "";
}

TEST(Documentation, NumPyReadsAStoreInFiveLines) {
  const std::string text = read_text_file(CGCN_SOURCE_DIR "/docs/formats.md");
  const std::string opening = "```python\n";
  const size_t begin = text.find(opening) + opening.size();
  const std::string lines = text.substr(begin, text.find("```", begin) - begin);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 5);

  const test::TemporaryFolder folder;
  fs::create_directories(folder / "g");
  test::write_npy<int32_t>(folder / "g" / "edge_index.npy", {0, 0, 2, 4, 1, 2}, {2, 3});
  test::write_npy<float>(folder / "g" / "features.npy", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 2});
  test::write_npy<uint8_t>(folder / "g" / "labels.npy", {0, 1, 1, 1, 0, 0, 1, 0, 0, 1}, {5, 2});
  test::write_npy<uint8_t>(folder / "g" / "split.npy", {0, 0, 1, 2, 255}, {5});
  test::import(folder / "g", folder / "my-graph");
  test::write_bytes(folder / "read.py", lines + R"(
print(neighbours.tolist(), arrays["features"].sum(axis=0).tolist(), arrays["split"].tolist(), meta["nodes"], meta["edges"])
print(np.unpackbits(arrays["labels"], axis=1, bitorder="little")[:, :meta["labels"]["classes"]].ravel().tolist())
)");
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (output_of(std::string(python) + " -c 'import numpy; print(1)' 2>/dev/null").empty()) continue;
    EXPECT_EQ(output_of("cd " + folder.path().string() + " && " + python + " read.py"),
              "[1, 4] [20.0, 25.0] [0, 0, 1, 2, 255] 5 2\n[0, 1, 1, 1, 0, 0, 1, 0, 0, 1]\n");
    return;
  }
  GTEST_SKIP() << "python3 with numpy is not on this machine";
}

}  // namespace
}  // namespace cgcn
