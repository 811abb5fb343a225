// The command line. Every failure ends here: one message, a non-zero exit.
//   1 a problem with a file, the machine or the data; 2 wrong usage: the message names an option or an argument;
//   70 a bug of ours; 130 interrupted
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/help.h"
#include "common/error.h"
#include "common/log.h"
#include "process/launch.h"
#include "process/signals.h"

namespace cgcn {
namespace {

// CLI11's messages in the words of ours.
std::string reword(const std::string& text) {
  const auto begins = [&](std::string_view what) { return text.starts_with(what); };
  if (const size_t at = text.find(": At Most 1 required but received"); at != std::string::npos)
    return text.substr(0, at) + " is given more than once";
  if (const size_t at = text.find(": 1 required "); at != std::string::npos && text.ends_with(" missing")) {
    const std::string name = text.substr(0, at), value = text.substr(at + 13, text.size() - at - 21);
    return fmt::format("{0} needs a value: {0} {1}", name, value);
  }
  if (text.ends_with(" is required") && !begins("-")) return capitals(text.substr(0, text.find(' '))) + " is required";
  if (begins("The following argument")) {
    const bool several = begins("The following arguments");
    return fmt::format("unexpected argument{}{}", several ? "s" : "", text.substr(text.find(':')));
  }
  if (const size_t equals = text.find(" = "); begins("Could not convert: ") && equals != std::string::npos)
    return fmt::format("{}: '{}' is not a number that it takes", text.substr(19, equals - 19), text.substr(equals + 3));
  return text;
}

// CLI11's own messages do not say what was meant. The first word that is no command, or no option of the command.
std::string describe_usage_error(const CLI::App& program, const CLI::ParseError& problem, int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const CLI::App* command = nullptr;
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0) {
      const CLI::App& asked = command != nullptr ? *command : program;
      const std::string name = word.substr(0, word.find('='));
      std::vector<std::string> known;
      for (const CLI::Option* option : asked.get_options()) {
        for (const auto* names : {&option->get_lnames(), &option->get_fnames()})
          for (const std::string& known_name : *names) known.push_back("--" + known_name);
        for (const std::string& letter : option->get_snames()) known.push_back("-" + letter);
      }
      if (name != "-h" && std::find(known.begin(), known.end(), name) == known.end()) {
        for (const CLI::App* other : program.get_subcommands({}))
          if (command != nullptr && other != command && other->get_option_no_throw(name) != nullptr)
            return fmt::format("unknown option {} (`{}` has it)", name, other->get_name());
        const std::string near = nearest(name, known);
        return fmt::format("unknown option {}{}", name, near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
      }
    } else if (command == nullptr) {
      std::vector<std::string> known;
      for (const CLI::App* other : program.get_subcommands({})) {
        if (other->get_name() == word) command = other;
        known.push_back(other->get_name());
      }
      if (command == nullptr) return fmt::format("unknown command '{}'{}", word, did_you_mean(word, known));
    }
  }
  return reword(problem.what());
}

// An error that names an option or an argument of the command line, such as "--parts" or "STORE".
bool is_wrong_usage(const Error& error) {
  const std::string& where = error.where();
  // A budget that turns out too small for the graph is no wrong word.
  if (where == "--memory" && error.problem().starts_with("is too little")) return false;
  return where.starts_with("-") || (!where.empty() && std::all_of(where.begin(), where.end(), [](unsigned char c) {
           return std::isupper(c) != 0;
         }));
}

// Most commands run in one process.
void require_one_process(const std::string& command) {
  for (const char* name : {"train", "evaluate", "predict"})
    if (command == name) return;
  dist::require_alone("clustergcn " + command);
}

int run(int argc, char** argv) {
  CLI::App program("Trains deep graph convolutional networks on large graphs (Cluster-GCN).", "clustergcn");
  program.formatter(std::make_shared<HelpFormatter>());  // first: commands take it over
  program.require_subcommand(1);
  program.set_version_flag("--version", "clustergcn " CGCN_VERSION);
  for (const auto add : {add_import_command, add_download_command, add_generate_command, add_partition_command,
                         add_info_command, add_train_command, add_evaluate_command, add_predict_command,
                         add_report_command, add_reproduce_command, add_options_command, add_manual_command})
    add(program);
  if (argc == 1) {
    log::write_line(program.help());
    return 2;
  }
  std::vector<char*> words(argv, argv + argc);
  settle_help(program, words);
  argc = static_cast<int>(words.size());
  argv = words.data();
  require_one_process(argv[1]);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return program.exit(problem);  // --help, --version
    std::string command = "clustergcn";
    for (const CLI::App* used : program.get_subcommands()) command += " " + used->get_name();
    log::write_line(
        fmt::format("error: {}\nhint: {} --help", describe_usage_error(program, problem, argc, argv), command));
    return 2;
  }
  if (std::fflush(stdout) != 0 && errno != EPIPE)
    throw Error(fmt::format("cannot write: {}", std::strerror(errno)), "standard output");
  return 0;
}

}  // namespace
}  // namespace cgcn

int main(int argc, char** argv) {
  cgcn::occupy_standard_streams();
  cgcn::install_interrupt_handler();
  cgcn::install_mapping_fault_handler();
  try {
    return cgcn::run(argc, argv);
  } catch (const cgcn::dist::SilentExit& end) {
    return end.status;
  } catch (const cgcn::Error& error) {
    cgcn::log::write_line(std::string("error: ") + error.what());
    return cgcn::is_wrong_usage(error) ? 2 : 1;
  } catch (const cgcn::Interrupted& stop) {
    cgcn::log::write_line(stop.what());
    return 130;
  } catch (const std::system_error& problem) {  // what fmt and the standard library say of files
    cgcn::log::write_line(std::string("error: ") + problem.what());
    return 1;
  } catch (const std::bad_alloc&) {
    cgcn::log::write_line("error: out of memory\nhint: a smaller --memory, fewer --threads, or a machine with more");
    return 1;
  } catch (const std::exception& bug) {
    cgcn::log::write_line(std::string("internal error: ") + bug.what() + "\n  This is a bug; please report it.");
    return 70;
  }
}
