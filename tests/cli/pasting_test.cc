// What the program prints to be pasted is what it reads: every option, in a value that is not its default.
#include <cstdio>
#include <set>
#include <sstream>

#include "cli/command.h"
#include "cli/import_command.h"
#include "generate/shape.h"
#include "io/text/fields.h"
#include "program.h"
#include "train/run_options.h"

namespace cgcn {
namespace {

// As a shell cuts it.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  FILE* shell = ::popen(("printf '%s\\n' " + line).c_str(), "r");
  std::string word;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) {
    if (c != '\n')
      word.push_back(static_cast<char>(c));
    else
      words.push_back(std::exchange(word, {}));
  }
  ::pclose(shell);
  return words;
}

bool change(Option& option) {
  std::vector<std::string> candidates = {option.text() == "true" ? "false" : "true",
                                         "3",
                                         "0.5",
                                         "0.25",
                                         "1.5",
                                         "20000000000000000000",
                                         "it's a \"name\" with $signs",
                                         "60/20/20",
                                         "2G",
                                         "planetoid",
                                         "10",
                                         "name"};
  candidates.insert(candidates.begin(), option.choices().begin(), option.choices().end());
  for (const std::string& candidate : candidates) {
    try {
      option.set(candidate, "test");
    } catch (const Error&) {
      continue;
    }
    if (!option.is_default()) return true;
  }
  return false;
}

template <class Options>
void expect_pasted_options_to_parse() {
  Options changed, parsed;
  OptionList changed_list, parsed_list;
  changed.list_options(changed_list);
  parsed.list_options(parsed_list);
  std::string line;
  for (Option& option : changed_list.all()) {
    EXPECT_TRUE(change(option)) << option.name() << ": no other value was found";
    line += " " + option.command_line();
  }
  CLI::App app;
  bind_options(app, parsed_list);
  std::vector<std::string> words = words_of(line);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  ASSERT_NO_THROW(app.parse(words)) << line;
  EXPECT_EQ(parsed_list.to_json(), changed_list.to_json()) << line;
}

TEST(Pasting, EveryOptionParsesBack) {
  expect_pasted_options_to_parse<RunOptions>();
  expect_pasted_options_to_parse<ImportOptions>();
  expect_pasted_options_to_parse<GenerateOptions>();
  expect_pasted_options_to_parse<CommonOptions>();
}

// Newer versions of CLI11 refuse an argument that is called as an option is.
TEST(Pasting, NoArgumentIsCalledAsAnOptionIs) {
  std::istringstream text(read_text_file(fs::path(CGCN_SOURCE_DIR) / "docs" / "options.md"));
  std::set<std::string> arguments;
  size_t found = 0;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "clustergcn") {
      arguments.clear();
      while (words >> word)
        arguments.insert(lower_case(word.substr(word[0] == '[', word.find(']') - (word[0] == '['))));
      found += arguments.size();
    } else if (line.starts_with("| `--")) {
      const std::string option = line.substr(5, line.find_first_of(" `", 5) - 5);
      EXPECT_FALSE(arguments.contains(option)) << option;
    }
  }
  EXPECT_GT(found, 20u);
}

TEST(Pasting, FlagsHaveBothForms) {
  for (const bool value : {false, true})
    for (const bool initial : {false, true}) {
      bool flag = initial;
      OptionList list;
      list.add("bias", &flag, "").set(value ? "true" : "false", "test");
      const std::string line = list.find("bias")->command_line();
      EXPECT_EQ(line, value ? "--bias" : "--no-bias");
      flag = !value;
      CLI::App app;
      bind_options(app, list);
      app.parse(line);
      EXPECT_EQ(flag, value);
    }
}

class PastedSettings : public test::ProgramTest {};

TEST_F(PastedSettings, OfARunGiveTheSameRun) {
  generate("g");
  const Outcome first = run(train("g", "a",
                                  {"--no-layer-norm", "--standardise", "--transductive", "--schedule", "step",
                                   "--partition-seed", "18446744073709551615"}));
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const std::string mark = "settings:";
  const size_t at = first.errors.find(mark);
  ASSERT_NE(at, std::string::npos) << first.errors;
  std::vector<std::string> arguments =
      words_of(first.errors.substr(at + mark.size(), first.errors.find('\n', at) - at - mark.size()));
  arguments.insert(arguments.begin(), {"train", "g", "--run", "b"});
  ASSERT_EQ(run(arguments).exit_code, 0);
  EXPECT_EQ(read_text_file(folder_ / "a" / "config.toml"), read_text_file(folder_ / "b" / "config.toml"));
  EXPECT_EQ(weights("a"), weights("b"));
  EXPECT_THAT(read_text_file(folder_ / "a" / "config.toml"), testing::HasSubstr("\"18446744073709551615\""));
}

}  // namespace
}  // namespace cgcn
