// Round trips, every kind of damage, and a second reader of the form (python3-numpy) where it is installed.
#include "train/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/random.h"
#include "support.h"

namespace cgcn {
namespace {

const std::vector<float> kWeights = {1.5f, -2, 3, 4, 5, 6.25f};
const std::vector<uint64_t> kSteps = {7, 1ull << 60};
const std::vector<uint8_t> kBytes = {1, 2, 3};

void write_example(const fs::path& path) {
  SafetensorsWriter writer;
  writer.add<uint8_t>("bytes", {3}, kBytes);
  writer.add<float>("layer1.weight", {2, 3}, kWeights);
  writer.add<uint64_t>("steps", {2}, kSteps);
  writer.add<float>("empty", {0, 4}, {});
  writer.set_metadata({{"format", "pt"}, {"name", "\"quoted\" ü"}});
  writer.write(path);
}

TEST(Safetensors, ReadsWhatItWrote) {
  const test::TemporaryFolder folder;
  write_example(folder / "x.safetensors");
  const SafetensorsFile file(folder / "x.safetensors");
  EXPECT_THAT(file.values<float>("layer1.weight"), testing::ElementsAreArray(kWeights));
  EXPECT_THAT(file.shape("layer1.weight"), testing::ElementsAre(2, 3));
  EXPECT_THAT(file.values<uint64_t>("steps"), testing::ElementsAreArray(kSteps));
  EXPECT_THAT(file.values<uint8_t>("bytes"), testing::ElementsAreArray(kBytes));
  EXPECT_TRUE(file.values<float>("empty").empty());
  EXPECT_EQ(file.metadata("name"), "\"quoted\" ü");
  EXPECT_THAT(test::message_of<Error>([&] { file.values<float>("steps"); }), testing::HasSubstr("U64"));
  EXPECT_THAT(test::message_of<Error>([&] { file.values<float>("nothing"); }), testing::HasSubstr("nothing"));
  EXPECT_THAT(test::message_of<Error>([&] { file.metadata("nothing"); }), testing::HasSubstr("nothing"));
}

TEST(Safetensors, AnotherProgramReadsIt) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2> /dev/null") != 0)
    GTEST_SKIP() << "python3-numpy is not installed";
  const test::TemporaryFolder folder;
  write_example(folder / "x.safetensors");
  write_file_atomically(folder / "read.py", R"(
import json, struct, sys
import numpy
raw = open(sys.argv[1], 'rb').read()
(length,) = struct.unpack('<Q', raw[:8])
header = json.loads(raw[8:8 + length])
assert header.pop('__metadata__')['format'] == 'pt'
types = {'F32': '<f4', 'U64': '<u8', 'U8': '|u1'}
def array(name):
    begin, end = header[name]['data_offsets']
    return numpy.frombuffer(raw[8 + length + begin:8 + length + end], types[header[name]['dtype']]).reshape(header[name]['shape'])
assert array('layer1.weight').tolist() == [[1.5, -2, 3], [4, 5, 6.25]]
assert array('steps').tolist() == [7, 1 << 60]
assert array('bytes').tolist() == [1, 2, 3]
assert array('empty').shape == (0, 4)
assert 8 + length + max(e['data_offsets'][1] for e in header.values()) == len(raw)
)");
  const std::string command =
      fmt::format("/usr/bin/python3 {} {}", (folder / "read.py").string(), (folder / "x.safetensors").string());
  EXPECT_EQ(std::system(command.c_str()), 0);
}

// Whatever the bytes: an Error, or a file whose every array can be read to its end.
void try_bytes(const fs::path& path, const std::string& bytes) {
  write_file_atomically(path, bytes);
  try {
    const SafetensorsFile file(path);
    uint64_t sum = 0;
    for (const std::string& name : file.names()) try {
        for (const uint8_t byte : file.values<uint8_t>(name)) sum += byte;
      } catch (const Error&) {
      }
    EXPECT_GE(sum, 0u);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(path.filename().string()), std::string::npos);
  }
}

TEST(Safetensors, EveryCutIsRefused) {
  const test::TemporaryFolder folder;
  write_example(folder / "x.safetensors");
  const std::string whole = read_text_file(folder / "x.safetensors");
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file_atomically(folder / "cut", whole.substr(0, size));
    EXPECT_THROW(SafetensorsFile(folder / "cut"), Error) << size;
  }
}

TEST(Safetensors, DamageNeverCrashes) {
  const test::TemporaryFolder folder;
  write_example(folder / "x.safetensors");
  const std::string whole = read_text_file(folder / "x.safetensors");
  Random random(5, Purpose::kTest);
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = whole;
    for (uint32_t changes = 1 + random.below(4); changes > 0; --changes)
      bytes[random.below(static_cast<uint32_t>(bytes.size()))] = static_cast<char>(random.next());
    try_bytes(folder / "damaged", bytes);
  }
}

TEST(Safetensors, LyingHeadersAreRefused) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& header, size_t data_bytes) {
    std::string bytes(8, '\0');
    const uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    write_file_atomically(folder / "lie", bytes + header + std::string(data_bytes, 'x'));
    EXPECT_THROW(SafetensorsFile(folder / "lie"), Error) << header;
  };
  refused("[]", 0);
  refused("{", 0);
  refused(R"({"__metadata__":{"a":1}})", 0);
  refused(R"({"a":5})", 0);
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4);
  refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4);
  refused(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0);
  refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6);
  refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 6);
  refused(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
      6);
  refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 6);
  refused(R"({"a":{"dtype":"Q9","shape":[4],"data_offsets":[0,4]}})", 4);
}

}  // namespace
}  // namespace cgcn
