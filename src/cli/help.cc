#include "cli/help.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "common/log.h"

namespace cgcn {
namespace {

constexpr size_t kWidest = 100;     // longer lines are harder to read
constexpr size_t kNarrow = 72;      // below it a description has lines of its own
constexpr size_t kNameColumn = 28;  // where descriptions begin, next to the names

std::set<const CLI::Option*>& advanced_options() {
  static std::set<const CLI::Option*> options;
  return options;
}

std::set<const CLI::Option*>& flags_that_are_on() {
  static std::set<const CLI::Option*> options;
  return options;
}

size_t help_width() {
  size_t columns = 80;
  winsize size{};
  if (const char* given = std::getenv("COLUMNS"); given != nullptr && std::atoi(given) > 0)
    columns = static_cast<size_t>(std::atoi(given));
  else if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    columns = size.ws_col;
  return std::clamp<size_t>(columns, 40, kWidest);
}

size_t columns_in(std::string_view text) {  // a UTF-8 character counts as one
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string heading(const std::string& title) {
  return log::shows_colour(STDOUT_FILENO) ? fmt::format("\n\x1b[1m{}:\x1b[0m\n", title) : fmt::format("\n{}:\n", title);
}

std::string entry(const std::string& name, const std::string& description, size_t width) {
  const std::string shown = log::shows_colour(STDOUT_FILENO) ? fmt::format("\x1b[36m{}\x1b[0m", name) : name;
  const bool apart = width < kNarrow || columns_in(name) + 4 > kNameColumn;
  const size_t indent = width < kNarrow ? 6 : kNameColumn;
  std::string text = "  " + shown;
  text += apart ? "\n" + std::string(indent, ' ') : std::string(indent - 2 - columns_in(name), ' ');
  return text + wrap_text(description, width, indent, indent) + "\n";
}

// Many choices stand in the description, where they can be wrapped.
bool has_long_choices(const CLI::Option& option) {
  return option.get_type_name().size() > 20 && option.get_type_name().find('|') != std::string::npos;
}

std::string shown_name(const CLI::Option& option) {
  std::string name = (flags_that_are_on().contains(&option) ? "--[no-]" : "--") + option.get_lnames().front();
  if (!option.get_snames().empty()) name = "-" + option.get_snames().front() + ", " + name;
  if (option.get_items_expected_max() > 0) name += has_long_choices(option) ? " NAME" : " " + option.get_type_name();
  return name;
}

std::string shown_description(const CLI::Option& option) {
  if (!has_long_choices(option)) return option.get_description();
  std::string choices;
  for (const char c : option.get_type_name()) choices += c == '|' ? std::string(", ") : std::string(1, c);
  std::string text = option.get_description(), value;
  if (const size_t at = text.rfind(" ["); at != std::string::npos && text.back() == ']') {
    value = text.substr(at);
    text.resize(at);
  }
  return text + "; one of " + choices + value;
}

std::string usage_of(const CLI::App& command, const std::string& name) {
  std::string text = "Usage: " + (name.empty() ? command.get_name() : name);
  if (!command.get_subcommands({}).empty()) return text + " COMMAND [OPTIONS]\n";
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string word = capitals(option->get_name(/*positional=*/true));
    text += option->get_required() ? " " + word : " [" + word + "]";
  }
  return text + " [OPTIONS]\n";
}

// Commands to paste: never wrapped, and short enough for 60 columns.
std::string examples_of(const CLI::App& command) {
  static const std::map<std::string, std::string> examples = {
      {"clustergcn", "clustergcn generate small\nclustergcn train small\n"},
      {"import",
       "clustergcn import edges.csv my-graph --split 60/20/20 \\\n  --features nodes.csv --labels labels.csv\n"},
      {"download", "clustergcn download cora cora\n"},
      {"generate", "clustergcn generate ppi --like ppi\n"},
      {"partition", "clustergcn partition my-graph --parts 50\n"},
      {"info", "clustergcn info my-graph\n"},
      {"train", "clustergcn train my-graph --run my-run\nclustergcn train --run my-run --resume\n"},
      {"evaluate", "clustergcn evaluate my-run\n"},
      {"predict", "clustergcn predict my-run --output classes.csv\n"},
      {"report", "clustergcn report runs/* -o report.html\n"},
      {"reproduce", "clustergcn reproduce diagonal --table markdown\n"}};
  const auto found = examples.find(command.get_name());
  if (found == examples.end()) return {};
  std::string text = heading(found->second.find('\n') + 1 == found->second.size() ? "Example" : "Examples");
  for (size_t begin = 0, end; begin < found->second.size(); begin = end + 1) {
    end = found->second.find('\n', begin);
    text += "  " + found->second.substr(begin, end - begin) + "\n";
  }
  return text;
}

std::string footer_of(const CLI::App& command, size_t width) {
  const std::string footer =
      command.get_subcommands({}).empty() ? command.get_footer() : "Help on a command: clustergcn help COMMAND";
  return footer.empty() ? "" : "\n" + wrap_text(footer, width, 0, 0) + "\n";
}

}  // namespace

std::string capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string wrap_text(const std::string& text, size_t width, size_t indent, size_t used) {
  std::string out;
  size_t column = used;
  const auto put = [&](std::string_view piece, bool after_blank) {
    const size_t columns = columns_in(piece);
    const bool blank = after_blank && column > indent;
    if (column > indent && column + (blank ? 1 : 0) + columns > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (blank) {
      out += ' ';
      ++column;
    }
    out += piece;
    column += columns;
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string_view word = std::string_view(text).substr(begin, end - begin);
    bool after_blank = true;
    while (columns_in(word) + indent > width) {  // longer than a line
      const size_t bar = word.find_first_of("|,");
      if (bar == std::string_view::npos || bar + 1 == word.size()) break;
      put(word.substr(0, bar + 1), after_blank);
      word.remove_prefix(bar + 1);
      after_blank = false;
    }
    if (!word.empty()) put(word, after_blank);
    begin = end + 1;
  }
  return out;
}

std::string HelpFormatter::make_help(const CLI::App* command, std::string name, CLI::AppFormatMode /*mode*/) const {
  const size_t width = help_width();
  if (command->get_parent() != nullptr) name = "clustergcn " + command->get_name();
  std::string text = wrap_text(command->get_description(), width, 0, 0) + "\n\n" + usage_of(*command, name);
  const auto commands = command->get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); });
  if (!commands.empty()) text += heading("Commands");
  for (const CLI::App* other : commands) text += entry(other->get_name(), other->get_description(), width);
  const auto arguments = command->get_options([](const CLI::Option* o) { return o->get_positional(); });
  if (!arguments.empty()) text += heading("Arguments");
  for (const CLI::Option* option : arguments)
    text += entry(capitals(option->get_name(/*positional=*/true)), option->get_description(), width);
  std::string group;
  for (const CLI::Option* option : command->get_options([](const CLI::Option* o) { return o->nonpositional(); })) {
    if (option->get_group().empty() || option == command->get_help_ptr()) continue;
    if (option->get_group() != group) {
      group = option->get_group();
      text += heading(group.find(' ') == std::string::npos && commands.empty() ? group + " options" : group);
    }
    text += entry(shown_name(*option), shown_description(*option), width);
  }
  return text + examples_of(*command) + footer_of(*command, width);
}

void mark_advanced(const CLI::Option* option) { advanced_options().insert(option); }
void mark_on_by_default(const CLI::Option* option) { flags_that_are_on().insert(option); }

void shorten_help(CLI::App& command) {
  constexpr size_t kMany = 30;  // fewer are shown at once
  if (command.get_options().size() <= kMany) return;
  size_t hidden = 0;
  for (CLI::Option* option : command.get_options([](const CLI::Option*) { return true; }))
    if (advanced_options().contains(option)) {
      option->group("");
      ++hidden;
    }
  command.footer(fmt::format("{} more options: clustergcn {} --help-all", hidden, command.get_name()));
}

void settle_help(CLI::App& program, std::vector<char*>& words) {
  static char help[] = "--help";
  if (std::string_view(words[1]) == "help") {
    words.erase(words.begin() + 1);
    const auto named = [&](const CLI::App* command) { return command->get_name() == words[1]; };
    const bool known = words.size() == 1 || !program.get_subcommands(named).empty();
    if (known) words.push_back(help);  // else parsing says that there is no such command
  }
  bool all = false, asked = false;
  for (char*& word : words) {
    if (std::string_view(word) == "--help-all") {
      word = help;
      all = true;
    }
    asked |= std::string_view(word) == "--help" || std::string_view(word) == "-h";
  }
  if (all || !asked) return;
  for (CLI::App* command : program.get_subcommands({})) shorten_help(*command);
}

}  // namespace cgcn
