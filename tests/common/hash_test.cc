#include "common/hash.h"

#include <gtest/gtest.h>

#include <string>

#include "common/random.h"
#include "support.h"

namespace cgcn {
namespace {

// Published test vectors of XXH3 (seed 0, no input).
TEST(Hash, GivesThePublishedNumbers) {
  EXPECT_EQ(checksum("", 0), 0x2D06800538D394C2u);
  EXPECT_EQ(Hasher().digest64(), 0x2D06800538D394C2u);
  EXPECT_EQ(Hasher().digest128_hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex64(0xAB), "00000000000000ab");
}

TEST(Hasher, DependsOnTheBytesNotOnThePieces) {
  Random random(3, Purpose::kTest);
  std::string text(5000, ' ');
  for (char& c : text) c = static_cast<char>(random.next());
  Hasher whole;
  whole.add(text.data(), text.size());
  EXPECT_EQ(whole.digest64(), checksum(text.data(), text.size()));
  for (int trial = 0; trial < 20; ++trial) {
    Hasher pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t length = std::min<size_t>(random.below(700), text.size() - at);
      pieces.add(text.data() + at, length);
      at += length;
    }
    EXPECT_EQ(pieces.digest64(), whole.digest64());
    EXPECT_EQ(pieces.digest128_hex(), whole.digest128_hex());
  }
}

TEST(Hasher, TextIsDelimited) {
  Hasher a, b;
  a.add("ab").add("c");
  b.add("a").add("bc");
  EXPECT_NE(a.digest128_hex(), b.digest128_hex());
}

}  // namespace
}  // namespace cgcn
