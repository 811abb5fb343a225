// clustergcn options: docs/options.md, made from what the command line itself is made of.
#include <fmt/format.h>

#include "cli/command.h"

namespace cgcn {
namespace {

std::string escape_bars(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string usage(const CLI::App& command) {
  std::string text = "clustergcn " + command.get_name();
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string name = upper_case(option->get_name(/*positional=*/true));
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text + " [options]";
}

void print_command(const CLI::App& command) {
  fmt::print("\n## {}\n\n{}.\n\n    {}\n", command.get_name(), command.get_description(), usage(command));
  std::string group;
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->nonpositional(); })) {
    if (option->get_lnames().front() == "help") continue;
    if (option->get_group() != group)
      fmt::print("\n### {}\n\n| option | meaning [default] |\n| --- | --- |\n", group = option->get_group());
    const std::string value = option->get_items_expected_max() == 0 ? "" : " " + option->get_type_name();
    fmt::print("| `--{}{}` | {} |\n", option->get_lnames().front(), escape_bars(value),
               escape_bars(option->get_description()));
  }
}

void print_all(const CLI::App& program) {
  fmt::print("# Options\n\nMade by `clustergcn options`; do not edit.\n");
  for (const CLI::App* command : program.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    print_command(*command);
}

}  // namespace

void add_options_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("options", "Print every option of every command as Markdown");
  command->group("");  // not in --help: for the documents
  command->callback([&program] { print_all(program); });
}

}  // namespace cgcn
