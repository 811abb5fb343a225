#include "cli/command.h"

#include <algorithm>
#include <set>

#include "common/error.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/threads.h"
#include "graph/features.h"

namespace cgcn {

void CommonOptions::list_options(OptionList& list) {
  list.begin_group("Everywhere");
  list.add("threads", &threads, "threads to use; 0: all cores that the process may use").range(0, 4096).common();
  list.add("quiet", &quiet, "print the result only").common();
  list.add("json", &json, "print the result as JSON").common();
}

namespace {

// Options that --help leaves to --help-all.
std::set<const CLI::Option*>& advanced_options() {
  static std::set<const CLI::Option*> options;
  return options;
}

}  // namespace

void shorten_help(CLI::App& command) {
  constexpr size_t kMany = 30;  // fewer are shown at once
  if (command.get_options().size() <= kMany) return;
  size_t hidden = 0;
  for (CLI::Option* option : command.get_options([](const CLI::Option*) { return true; }))
    if (advanced_options().contains(option)) {
      option->group("");
      ++hidden;
    }
  command.footer(fmt::format("\n{} more: clustergcn {} --help-all", hidden, command.get_name()));
}

void bind_options(CLI::App& command, OptionList& list) {
  for (Option& option : list.all()) {
    const std::string flag = "--" + option.name();
    std::string help = option.help();
    CLI::Option* declared = nullptr;
    if (option.kind() == Option::Kind::kFlag) {
      const bool on = option.default_text() == "true";  // then what a user may want to say is --no-…
      declared = command.add_flag_function(
          flag + ",!--no-" + option.name(),
          [&option, flag](int64_t count) { option.set(count > 0 ? "true" : "false", flag); },
          on ? fmt::format("{} (on unless --no-{})", help, option.name()) : help);
    } else {
      if (!option.default_text().empty()) help += fmt::format(" [{}]", option.default_text());
      declared = command.add_option_function<std::string>(
          flag, [&option, flag](const std::string& text) { option.set(text, flag); }, help);
      declared->type_name(option.value_name());
    }
    declared->group(option.group());
    if (!option.is_common()) advanced_options().insert(declared);
  }
}

std::vector<std::string> note_unused_options(const CLI::App& command, const OptionList& list,
                                             const std::function<std::string(const Option&)>& why_unused) {
  std::vector<std::string> notes;
  for (const Option& option : list.all()) {
    if (command.count("--" + option.name()) == 0) continue;
    if (const std::string why = why_unused(option); !why.empty())
      notes.push_back(fmt::format("{} ({})", option.command_line(), why));
  }
  if (!notes.empty()) log::write_line(fmt::format("note: no effect: {}", fmt::join(notes, ", ")));
  return notes;
}

void apply_common_options(const CommonOptions& options) {
  log::set_level(options.quiet || options.json ? log::Level::kQuiet : log::Level::kNormal);
  const int asked = static_cast<int>(options.threads), cores = usable_cores();
  if (asked > cores)
    log::note("--threads {}: this process may use {} cores, so {} threads are used", asked, cores, cores);
  set_thread_count(std::min(asked, cores));
}

std::string describe_training_share(uint64_t nodes, uint64_t all_nodes, uint64_t edges, uint64_t all_edges) {
  constexpr double kLittle = 10;  // per cent
  const auto percent = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  return fmt::format("{} of {} nodes ({:.1f} %) and {} of {} edges ({:.1f} %){}", format_count(nodes),
                     format_count(all_nodes), percent(nodes, all_nodes), format_count(edges), format_count(all_edges),
                     percent(edges, all_edges),
                     percent(edges, all_edges) < kLittle
                         ? "; train --transductive sees all of them, and the labels of training nodes only"
                         : "");
}

std::string describe_features(const FeatureMatrix& features) {
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      return fmt::format("{}, dense float32", format_count(features.columns()));
    case FeatureMatrix::Kind::kDense16:
      return fmt::format("{}, dense float16", format_count(features.columns()));
    case FeatureMatrix::Kind::kIdentity:
      return "none (the identity stands for them)";
    case FeatureMatrix::Kind::kSparse:
      break;
  }
  return fmt::format("{}, sparse, {:.1f} non-zeros a node", format_count(features.columns()),
                     static_cast<double>(features.num_entries()) / std::max<NodeId>(1, features.rows()));
}

}  // namespace cgcn
