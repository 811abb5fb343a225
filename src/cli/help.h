// --help, as wide as the terminal: the options people use, --help-all for the rest, headings in colour.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cgcn {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override;
};

// Text in lines of at most `width` columns. Breaks at blanks, and after | and , in words that are longer than a line;
// never elsewhere. Lines after the first begin with `indent` blanks; the first has `used` columns already.
std::string wrap_text(const std::string& text, size_t width, size_t indent, size_t used);

std::string capitals(std::string text);

// An option that --help leaves to --help-all, and a flag that is on unless it is switched off.
void mark_advanced(const CLI::Option* option);
void mark_on_by_default(const CLI::Option* option);
// For --help of a command with many options: hides the advanced ones and says how to see them.
void shorten_help(CLI::App& command);
// `help COMMAND` becomes COMMAND --help; --help-all a --help that shows everything.
void settle_help(CLI::App& program, std::vector<char*>& words);

}  // namespace cgcn
