#include "common/error.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"

namespace cgcn {
namespace {

TEST(Error, JoinsWhatWhereAndWhatToTry) {
  EXPECT_STREQ(Error("is empty").what(), "is empty");
  EXPECT_STREQ(Error("is empty", "a.csv:3").what(), "a.csv:3: is empty");
  EXPECT_STREQ(Error("is empty", "", "fill it").what(), "is empty\nhint: fill it");
  const Error error("is empty", "a.csv", "fill it");
  EXPECT_STREQ(error.what(), "a.csv: is empty\nhint: fill it");
  EXPECT_EQ(error.problem(), "is empty");
  EXPECT_EQ(error.where(), "a.csv");
  EXPECT_EQ(error.hint(), "fill it");
}

TEST(Check, AFailureNamesTheConditionThePlaceAndTheDetail) {
  EXPECT_NO_THROW(CGCN_CHECK(1 + 1 == 2));
  const std::string message = test::message_of<std::logic_error>([] { CGCN_CHECK(1 + 1 == 3, "sum {}", 2); });
  EXPECT_NE(message.find("1 + 1 == 3"), std::string::npos) << message;
  EXPECT_NE(message.find("error_test.cc:"), std::string::npos) << message;
  EXPECT_NE(message.find(": sum 2"), std::string::npos) << message;
}

TEST(Error, ControlCharactersAreEscaped) {
  const std::string message = Error("line 1\nerror: forged \x1b[2J\x07 \xc2\x9b \x9b 日本", "a\nb", "c\td").what();
  EXPECT_EQ(message, "a\\nb: line 1\\nerror: forged \\x1b[2J\\x07 \\xc2\\x9b \\x9b 日本\nhint: c\td");
}

TEST(Error, ShowsLittleOfAFile) {
  const std::string content(1'000'000, 'x');
  const std::string message = Error(fmt::format("'{}' is not a number", content), "f:1").what();
  EXPECT_EQ(message.find("f:1: 'xxx"), 0u);
  EXPECT_NE(message.find("' is not a number"), std::string::npos);
  EXPECT_LE(std::count(message.begin(), message.end(), 'x'), 200);
  const std::string unquoted = Error("last read: " + content).what();
  EXPECT_LE(unquoted.size(), 250u);
  const std::string fits(190, 'y');
  EXPECT_EQ(Error(fmt::format("'{}' is odd", fits)).what(), fmt::format("'{}' is odd", fits));
}

TEST(Quoted, CutsBetweenCharacters) {
  EXPECT_EQ(std::string(Error("bad", "f", "one of:\n  a\n  b").what()), "f: bad\nhint: one of:\n  a\n  b");
  EXPECT_EQ(quoted("äöü", 3), "äö… (6 bytes)");
  EXPECT_EQ(quoted("äöü"), "äöü");
  EXPECT_EQ(quoted(""), "");
}

}  // namespace
}  // namespace cgcn
