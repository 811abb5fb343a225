#include "common/error.h"

#include <gtest/gtest.h>

#include "support.h"

namespace cgcn {
namespace {

TEST(Error, JoinsWhatWhereAndWhatToTry) {
  EXPECT_STREQ(Error("is empty").what(), "is empty");
  EXPECT_STREQ(Error("is empty", "a.csv:3").what(), "a.csv:3: is empty");
  EXPECT_STREQ(Error("is empty", "", "fill it").what(), "is empty\n  try: fill it");
  const Error error("is empty", "a.csv", "fill it");
  EXPECT_STREQ(error.what(), "a.csv: is empty\n  try: fill it");
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

}  // namespace
}  // namespace cgcn
