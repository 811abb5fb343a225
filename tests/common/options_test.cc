#include "common/options.h"

#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "support.h"

namespace cgcn {
namespace {

enum class Colour { kRed, kGreen };

struct Sample {
  bool verbose = false, shuffle = true;
  uint32_t parts = 7;
  uint64_t seed = 1;
  float rate = 0.01f;
  double tiny = 1e-8, whole = 3;
  std::string title = "a \"quoted\" name\\with\ttabs # and a hash";
  Colour colour = Colour::kRed;
  OptionList list;

  Sample() {
    list.begin_group("Numbers");
    list.add("parts", &parts, "how many").range(1, 1000).value("P");
    list.add("seed", &seed, "where to begin");
    list.add("rate", &rate, "how fast");
    list.add("tiny", &tiny, "very small");
    list.add("whole", &whole, "a real that is whole");
    list.begin_group("Others");
    list.add("verbose", &verbose, "say more");
    list.add("shuffle", &shuffle, "mix");
    list.add("title", &title, "text").shape([](const std::string& text) {
      if (text.empty()) throw std::invalid_argument("must not be empty");
    });
    list.add_choice("colour", &colour, {{"red", Colour::kRed}, {"green", Colour::kGreen}}, "which one");
  }
};

std::string refusal(const std::string& name, const std::string& text) {
  Sample sample;
  const std::string before = sample.list.find(name)->text();
  const std::string message = test::message_of<Error>([&] { sample.list.find(name)->set(text, "--" + name); });
  EXPECT_EQ(sample.list.find(name)->text(), before) << "a refused value was stored";
  return message;
}

TEST(Options, RefusalsNameTheOptionAndSayWhatIsWrong) {
  EXPECT_EQ(refusal("parts", "x"), "--parts: 'x' is not a number");
  EXPECT_EQ(refusal("parts", "1.5"), "--parts: '1.5' is not a whole number of zero or more");
  EXPECT_EQ(refusal("parts", "0"), "--parts: 0 is outside 1 to 1000");
  EXPECT_EQ(refusal("parts", "1001"), "--parts: 1001 is outside 1 to 1000");
  EXPECT_EQ(refusal("seed", "-1"), "--seed: '-1' is not a whole number of zero or more\nhint: --seed 1, the default");
  EXPECT_EQ(refusal("seed", "18446744073709551616"),
            "--seed: '18446744073709551616' is too large\nhint: --seed 1, the default");
  EXPECT_EQ(refusal("seed", ""), "--seed: '' is not a whole number of zero or more\nhint: --seed 1, the default");
  EXPECT_EQ(refusal("rate", "nan"), "--rate: 'nan' is not a finite number\nhint: --rate 0.01, the default");
  EXPECT_EQ(refusal("rate", "1e99"), "--rate: '1e99' is too large\nhint: --rate 0.01, the default");
  EXPECT_EQ(refusal("rate", "0.1x"), "--rate: '0.1x' is not a number\nhint: --rate 0.01, the default");
  EXPECT_EQ(refusal("verbose", "maybe"), "--verbose: 'maybe' is neither true nor false");
  EXPECT_EQ(refusal("title", ""), "--title: must not be empty\nhint: --title " + Sample().title + ", the default");
  EXPECT_EQ(refusal("colour", "gren"), "--colour: 'gren' is not one of red, green (did you mean 'green'?)");
  EXPECT_EQ(refusal("colour", "blue"), "--colour: 'blue' is not one of red, green");
}

void change_all(Sample& sample) {
  sample.verbose = true;
  sample.shuffle = false;
  sample.parts = 999;
  sample.seed = UINT64_MAX;
  sample.rate = 0.1f;
  sample.tiny = -2.5e-300;
  sample.whole = 4;
  sample.title = "päth/\x01\x1f\x7f/ünder \"quotes\"\r\n";
  sample.colour = Colour::kGreen;
}

void expect_equal(const Sample& a, const Sample& b) {
  EXPECT_EQ(a.verbose, b.verbose);
  EXPECT_EQ(a.shuffle, b.shuffle);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.rate, b.rate);
  EXPECT_EQ(a.tiny, b.tiny);
  EXPECT_EQ(a.whole, b.whole);
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.colour, b.colour);
}

TEST(Options, JsonRoundTripsBitForBit) {
  for (const bool changed : {false, true}) {
    Sample written, read;
    if (changed) change_all(written);
    const std::string text = written.list.to_json().dump();
    read.list.from_json(nlohmann::json::parse(text), "checkpoint");
    expect_equal(written, read);
  }
}

TEST(Options, JsonOfWrongFormIsRefused) {
  Sample sample;
  const auto message = [&](const char* text) {
    return test::message_of<Error>([&] { sample.list.from_json(nlohmann::json::parse(text), "header"); });
  };
  EXPECT_EQ(message("[1]"), "header: the options are not a JSON object");
  EXPECT_EQ(message(R"({"parts": [1]})"), "header: the value of 'parts' is neither text nor a number");
  EXPECT_EQ(message(R"({"parts": -3})"), "header: parts: -3 is outside 1 to 1000");
  EXPECT_EQ(message(R"({"part": 3})"), "header: unknown option 'part' (did you mean 'parts'?)");
  EXPECT_EQ(message(R"({"zzzzzzzz": 3})"), "header: unknown option 'zzzzzzzz'");
}

TEST(Options, TomlIsReadBackByATomlReader) {
  Sample written, read;
  change_all(written);
  const toml::table table = toml::parse(written.list.to_toml());
  EXPECT_EQ(table.size(), written.list.all().size());
  EXPECT_TRUE(table["whole"].is_floating_point()) << "a real keeps its kind";
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (const auto text = node.value_exact<std::string>())
      read.list.set(name, *text, "toml");
    else if (const auto flag = node.value_exact<bool>())
      read.list.set(name, *flag ? "true" : "false", "toml");
    else if (const auto real = node.value_exact<double>())
      read.list.set(name, fmt::format("{}", *real), "toml");
    else if (const auto integer = node.value_exact<int64_t>())
      read.list.set(name, fmt::format("{}", *integer), "toml");
    else
      ADD_FAILURE() << name << " has no plain value";
  }
  expect_equal(written, read);
}

TEST(Options, TextThatIsNotUtf8StillGivesAFile) {
  Sample sample;
  sample.title = "path\xff\xfe";
  EXPECT_NO_THROW(static_cast<void>(toml::parse(sample.list.to_toml())));
}

TEST(Options, DefaultsAreRememberedFromDeclaration) {
  Sample sample;
  EXPECT_TRUE(sample.list.find("parts")->is_default());
  sample.list.set("parts", "8", "");
  EXPECT_FALSE(sample.list.find("parts")->is_default());
  EXPECT_EQ(sample.list.find("parts")->default_text(), "7");
  EXPECT_EQ(sample.list.find("nothing"), nullptr);
}

TEST(Options, ANameIsDeclaredOnce) {
  Sample sample;
  EXPECT_THROW(sample.list.add("parts", &sample.parts, "again"), std::logic_error);
}

TEST(Nearest, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> names{"parts", "epochs", "layers", "hidden"};
  EXPECT_EQ(nearest("part", names), "parts");
  EXPECT_EQ(nearest("epcohs", names), "epochs");
  EXPECT_EQ(nearest("hiden", names), "hidden");
  EXPECT_EQ(nearest("completely-different", names), "");
  EXPECT_EQ(nearest("", {}), "");
}

}  // namespace
}  // namespace cgcn
