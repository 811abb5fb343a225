#include "cli/command.h"

#include <algorithm>
#include <cmath>

#include "cli/help.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/threads.h"
#include "graph/features.h"

namespace cgcn {

void CommonOptions::list_options(OptionList& list) {
  list.begin_group("Common");
  list.add("threads", &threads, "number of threads; 0: all cores that the process may use").range(0, 4096);
  list.add("quiet", &quiet, "print only the result").common();
  list.add("json", &json, "print the result as JSON").common();
}

void bind_options(CLI::App& command, OptionList& list) {
  for (Option& option : list.all()) {
    const std::string flag = "--" + option.name();
    std::string help = option.help();
    CLI::Option* declared = nullptr;
    if (option.kind() == Option::Kind::kFlag) {
      const bool on = option.default_text() == "true";
      declared = command.add_flag_function(
          flag + ",!--no-" + option.name(),
          [&option, flag](int64_t count) { option.set(count > 0 ? "true" : "false", flag); },
          on ? fmt::format("{} (default: on)", help) : help);
      if (on) mark_on_by_default(declared);
    } else {
      if (!option.default_text().empty()) help += fmt::format(" [{}]", option.default_text());
      declared = command.add_option_function<std::string>(
          flag, [&option, flag](const std::string& text) { option.set(text, flag); }, help);
      declared->type_name(option.value_name());
    }
    declared->group(option.group());
    if (!option.is_common()) mark_advanced(declared);
  }
}

std::vector<std::string> note_unused_options(const CLI::App& command, const OptionList& list) {
  std::vector<std::string> notes;
  for (const Option& option : list.all()) {
    if (command.count("--" + option.name()) == 0) continue;
    if (const std::string why = option.why_unused(); !why.empty())
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

std::string show_number(double value) {
  const double size = std::abs(value);
  if (size < 1000 || !(size < 1e9)) return fmt::format("{:.4g}", value);
  return (value < 0 ? "-" : "") + format_count(static_cast<uint64_t>(std::llround(size)));
}

namespace {

double percent_of(uint64_t count, uint64_t total) {
  return total == 0 ? 100.0 : 100.0 * static_cast<double>(count) / static_cast<double>(total);
}

}  // namespace

std::string describe_share(uint64_t nodes, uint64_t all_nodes, uint64_t edges, uint64_t all_edges) {
  return fmt::format("{} of {} nodes ({:.1f} %) and {} of {} edges ({:.1f} %)", format_count(nodes),
                     format_count(all_nodes), percent_of(nodes, all_nodes), format_count(edges),
                     format_count(all_edges), percent_of(edges, all_edges));
}

std::string describe_training_share(uint64_t nodes, uint64_t all_nodes, uint64_t edges, uint64_t all_edges) {
  constexpr double kLittle = 10;  // per cent
  return describe_share(nodes, all_nodes, edges, all_edges) +
         (percent_of(edges, all_edges) < kLittle
              ? "; train --transductive sees all of them, and the labels of training nodes only"
              : "");
}

std::string describe_features(const FeatureMatrix& features) {
  switch (features.kind()) {
    case FeatureMatrix::Kind::kDense32:
      return fmt::format("{}, dense float32", format_count(features.columns()));
    case FeatureMatrix::Kind::kDense16:
      return fmt::format("{}, dense float16", format_count(features.columns()));
    case FeatureMatrix::Kind::kDenseBFloat16:
      return fmt::format("{}, dense bfloat16", format_count(features.columns()));
    case FeatureMatrix::Kind::kIdentity:
      return "none (identity matrix)";
    case FeatureMatrix::Kind::kSparse:
      break;
  }
  return fmt::format("{}, sparse, {:.1f} non-zeros per node", format_count(features.columns()),
                     static_cast<double>(features.num_entries()) / std::max<NodeId>(1, features.rows()));
}

}  // namespace cgcn
