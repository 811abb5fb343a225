#include "common/json.h"

#include <gtest/gtest.h>

namespace cgcn {
namespace {

TEST(ParseJson, ReadsWhatIsWhole) {
  EXPECT_EQ(parse_json(R"({"a":[1,{"b":null}],"c":"[[["})"),
            (nlohmann::json{{"a", {1, {{"b", nullptr}}}}, {"c", "[[["}}));
  EXPECT_EQ(parse_json(std::string(50, '[') + std::string(50, ']')).size(), 1u);
}

TEST(ParseJson, DiscardsWhatIsNot) {
  for (const char* text : {"", "{", "{\"a\":1}}", "nan", "[1e999]"})
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
}

TEST(ParseJson, DiscardsWhatIsNestedWithoutEnd) {
  const size_t deep = 300000;
  EXPECT_TRUE(parse_json(std::string(deep, '[') + std::string(deep, ']')).is_discarded());
  std::string objects;
  for (size_t i = 0; i < deep; ++i) objects += "{\"a\":";
  EXPECT_TRUE(parse_json(objects + "1" + std::string(deep, '}')).is_discarded());
  EXPECT_TRUE(parse_json(objects).is_discarded());
}

}  // namespace
}  // namespace cgcn
