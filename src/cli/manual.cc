// clustergcn manual FOLDER: man pages, and completions for bash, zsh and fish, made from what the command line itself
// is made of.
#include <fmt/format.h>

#include <cctype>

#include "cli/command.h"
#include "common/file.h"

namespace cgcn {
namespace {

using Commands = std::vector<const CLI::App*>;

Commands shown_commands(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

std::string long_name(const CLI::Option& option) { return "--" + option.get_lnames().front(); }
bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Text of a man page: a dot at the begin of a line, and backslashes and hyphens, mean something there.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string page_head(const std::string& name, const std::string& summary, const std::string& version) {
  return fmt::format(".TH {} 1 \"\" \"clustergcn {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", upper(roff(name)),
                     version, roff(name), roff(summary));
}

std::string command_page(const CLI::App& command, const std::string& version) {
  const std::string name = "clustergcn-" + command.get_name();
  std::string page = page_head(name, command.get_description(), version);
  page += fmt::format(".SH SYNOPSIS\n.B clustergcn {}\n", command.get_name());
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string word = upper(option->get_name(/*positional=*/true));
    page += fmt::format("{}\n", option->get_required() ? word : "[" + word + "]");
  }
  page += "[options]\n";
  std::string group;
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_group() != group) page += fmt::format(".SH {}\n", upper(roff(group = option->get_group())));
    page +=
        fmt::format(".TP\n.B {}{}\n{}\n", roff(long_name(*option)),
                    takes_value(*option) ? " " + roff(option->get_type_name()) : "", roff(option->get_description()));
  }
  return page + ".SH SEE ALSO\n.BR clustergcn (1)\n";
}

std::string program_page(const CLI::App& program, const Commands& commands, const std::string& version) {
  std::string page = page_head("clustergcn", program.get_description(), version);
  page += ".SH SYNOPSIS\n.B clustergcn\nCOMMAND [options]\n.SH COMMANDS\n";
  for (const CLI::App* command : commands)
    page += fmt::format(".TP\n.BR clustergcn\\-{} (1)\n{}\n", command->get_name(), roff(command->get_description()));
  return page;
}

std::string words(const Commands& commands) {
  std::string text;
  for (const CLI::App* command : commands) text += (text.empty() ? "" : " ") + command->get_name();
  return text;
}

std::string bash_completion(const Commands& commands) {
  std::string text =
      "# bash completion for clustergcn\n_clustergcn() {\n  local word=${COMP_WORDS[COMP_CWORD]} "
      "command=${COMP_WORDS[1]} options\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"" +
      words(commands) + " --help --version\" -- \"$word\"))\n    return\n  fi\n  case $command in\n";
  for (const CLI::App* command : commands) {
    std::string names;
    for (const CLI::Option* option : options_of(*command)) names += (names.empty() ? "" : " ") + long_name(*option);
    text += fmt::format("    {}) options=\"{}\" ;;\n", command->get_name(), names);
  }
  return text +
         "    *) options= ;;\n  esac\n  case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\ncomplete -o filenames -F _clustergcn "
         "clustergcn\n";
}

// For zsh: quotes, brackets and colons have a meaning in a description.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      (out += '\\') += c;
    else
      out += c;
  }
  return out;
}

std::string zsh_completion(const Commands& commands) {
  std::string text = "#compdef clustergcn\nlocal -a commands\ncommands=(\n";
  for (const CLI::App* command : commands)
    text += fmt::format("  '{}:{}'\n", command->get_name(), zsh_text(command->get_description()));
  text += ")\nif (( CURRENT == 2 )); then\n  _describe command commands\n  return\nfi\ncase $words[2] in\n";
  for (const CLI::App* command : commands) {
    text += fmt::format("  {})\n    _arguments \\\n", command->get_name());
    for (const CLI::Option* option : options_of(*command))
      text += fmt::format("      '{}[{}]{}' \\\n", long_name(*option), zsh_text(option->get_description()),
                          takes_value(*option) ? ":value:_files" : "");
    text += "      '*:file:_files' ;;\n";
  }
  return text + "esac\n";
}

std::string fish_text(const std::string& text) {
  std::string out;
  for (const char c : text) (c == '\'' || c == '\\' ? out += '\\' : out) += c;
  return out;
}

std::string fish_completion(const Commands& commands) {
  std::string text = "# fish completion for clustergcn\n";
  for (const CLI::App* command : commands) {
    text += fmt::format("complete -c clustergcn -n __fish_use_subcommand -a {} -d '{}'\n", command->get_name(),
                        fish_text(command->get_description()));
    for (const CLI::Option* option : options_of(*command))
      text += fmt::format("complete -c clustergcn -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n",
                          command->get_name(), option->get_lnames().front(), takes_value(*option) ? " -r" : "",
                          fish_text(option->get_description()));
  }
  return text;
}

void write_manual(const CLI::App& program, const fs::path& folder) {
  const Commands commands = shown_commands(program);
  std::string version = program.version();  // "clustergcn 0.1.0"
  version.erase(0, version.rfind(' ') + 1);
  fs::create_directories(folder);
  write_file_atomically(folder / "clustergcn.1", program_page(program, commands, version));
  for (const CLI::App* command : commands)
    write_file_atomically(folder / ("clustergcn-" + command->get_name() + ".1"), command_page(*command, version));
  write_file_atomically(folder / "clustergcn.bash", bash_completion(commands));
  write_file_atomically(folder / "_clustergcn", zsh_completion(commands));
  write_file_atomically(folder / "clustergcn.fish", fish_completion(commands));
}

}  // namespace

void add_manual_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("manual", "Write man pages and completions for bash, zsh and fish");
  command->group("");  // not in --help: for the package
  auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "where to")->required();
  command->callback([&program, folder] { write_manual(program, *folder); });
}

}  // namespace cgcn
