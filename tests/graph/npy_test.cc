#include "graph/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/error.h"
#include "common/random.h"
#include "support.h"

namespace cgcn {
namespace {

NpyHeader parse(const std::string& file) {
  return parse_npy_header(std::as_bytes(std::span(file.data(), file.size())), "f.npy");
}

// A .npy file of this version with this header text and so many bytes of data.
std::string npy(const std::string& dict, size_t data_bytes, int version = 1) {
  std::string file("\x93NUMPY", 6);
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(dict.size() >> (8 * i));
  return file + dict + std::string(data_bytes, '\7');
}

std::string refusal(const std::string& file) {
  return test::message_of<Error>([&] { parse(file); });
}

TEST(NpyHeader, OfEveryVersionAndSpellingIsRead) {
  for (const int version : {1, 2, 3}) {
    const NpyHeader header = parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", 24, version));
    EXPECT_EQ(header.kind, 'f');
    EXPECT_EQ(header.item_bytes, 4u);
    EXPECT_FALSE(header.big_endian);
    EXPECT_FALSE(header.fortran_order);
    EXPECT_EQ(header.shape, (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ(header.dtype(), "<f4");
    EXPECT_EQ(header.num_elements(), 6u);
  }
  const NpyHeader odd = parse(npy("{\"shape\":(5L,),\"fortran_order\":True,\"descr\":\">i8\"}", 40));
  EXPECT_TRUE(odd.big_endian);
  EXPECT_TRUE(odd.fortran_order);
  EXPECT_EQ(odd.dtype(), ">i8");
  EXPECT_EQ(odd.shape, std::vector<uint64_t>{5});
  EXPECT_TRUE(parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", 1)).shape.empty());
  EXPECT_EQ(parse(npy("{'descr': '<U3', 'fortran_order': False, 'shape': (2,)}", 24)).dtype(), "<U3");
  EXPECT_EQ(parse(npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 99)).kind, 'O');
  EXPECT_EQ(parse(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 100)}", 0)).num_elements(), 0u);
}

TEST(NpyHeader, WhatIsBrokenIsNamed) {
  const auto with = [](const char* descr, const char* order, const char* shape, size_t bytes) {
    return npy(fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr, order, shape), bytes);
  };
  const auto expect = [](const std::string& file, const char* part) {
    const std::string message = refusal(file);
    EXPECT_TRUE(message.starts_with("f.npy: ")) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
  };
  expect("", "is not a .npy file");
  expect("PK\3\4 something else entirely", "is not a .npy file");
  expect(npy("{}", 0, 9), "version 9 is not known");
  expect(npy("{}", 0), "a key is missing");
  expect(npy("{'descr': '<f4', 'fortran_order': False}", 0), "a key is missing");
  expect(npy("{'colour': 1}", 0), "unknown key 'colour'");
  expect(npy("{'descr", 0), "a quote is not closed");
  expect(npy("garbage", 0), "'{' expected at byte 0");
  expect(with("'<f4'", "Perhaps", "(1,)", 4), "True or False expected");
  expect(with("'<f4'", "False", "(-1,)", 4), "a size expected");
  expect(with("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", 4), "more than eight dimensions");
  expect(with("'<f4'", "False", "(99999999999999999999999,)", 4), "a size expected");
  expect(with("'<f99999999999'", "False", "(1,)", 4), "dtype '<f99999999999' is not understood");
  expect(with("'<f'", "False", "(1,)", 4), "dtype '<f' is not understood");
  expect(with("'f4'", "False", "(1,)", 4), "dtype 'f4' is not understood");
  expect(with("'|S0'", "False", "(9223372036854775808, 4)", 0), "dtype '|S0' is not understood");
  expect(with("[('a', '<f4')]", "False", "(1,)", 4), "structured array");
  expect(with("'<f4'", "False", "(2, 3)", 23), "declares <f4 of shape (2, 3), 24 bytes, but holds 23");
  expect(with("'<f4'", "False", "(2, 3)", 25), "but holds 25");
  expect(with("'<f4'", "False", "(4294967296, 4294967296, 4294967296)", 8), "more elements than any file can hold");
}

TEST(NpyHeader, EveryTruncationIsRefusedAndNoAlterationCrashes) {
  const std::string whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse(whole.substr(0, length)), Error) << length;
  Random random(1, Purpose::kTest);
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string altered = whole;
    for (uint32_t k = 1 + random.below(3); k > 0; --k)
      altered[random.below(static_cast<uint32_t>(altered.size()))] = static_cast<char>(random.next());
    try {
      const NpyHeader header = parse(altered);
      EXPECT_TRUE(header.kind == 'O' ||
                  header.num_elements() * header.item_bytes == altered.size() - header.data_offset);
    } catch (const Error&) {
    }
  }
}

TEST(NpyHeader, WhatWeWriteIsReadAndAligned) {
  const std::vector<std::vector<uint64_t>> shapes{{}, {7}, {0}, {2, 3}};
  for (const auto& shape : shapes) {
    const std::string file = make_npy_header("<u4", shape);
    EXPECT_EQ(file.size(), kNpyHeaderBytes);
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    EXPECT_EQ(parse(file + std::string(count * 4, 'x')).shape, shape);
  }
  EXPECT_EQ(make_npy_header("<f4", std::vector<uint64_t>{UINT32_MAX, UINT32_MAX}).size(), kNpyHeaderBytes);
}

}  // namespace
}  // namespace cgcn
