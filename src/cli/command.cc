#include "cli/command.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "cli/help.h"
#include "clustergcn/clustergcn.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/threads.h"
#include "graph/features.h"
#include "kernels/instruction_sets.h"

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

namespace {

// The program as a file: the same version may have been built differently.
std::string describe_program() {
  Hasher hasher;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> piece(1 << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
    hasher.add(piece.data(), static_cast<size_t>(file.gcount()));
  return fmt::format("{} (build {})", clustergcn::version(), hex64(hasher.digest64()));
}

// Ranks on different processors would round differently: all use what all have.
void agree_on_instructions(dist::Group& group) {
  const kernels::InstructionSets own = group.together([] { return kernels::own_instruction_sets(); });
  group.require_same("the version of OpenBLAS", own.blas_version, "install the same on every host");
  const std::vector<int64_t> targets = group.all_gather_values(own.vector_targets);
  const std::vector<std::string> cores = group.all_gather(own.blas_core);
  std::vector<kernels::InstructionSets> all;
  for (uint32_t r = 0; r < group.size(); ++r) all.push_back({targets[r], cores[r], own.blas_version});
  const kernels::InstructionSets common = kernels::common_instruction_sets(all);
  if (std::any_of(all.begin(), all.end(), [&](const auto& sets) { return sets != common; }))
    log::note("processors differ: all processes compute as the oldest one can ({})", common.blas_core);
  group.together([&] { kernels::use_instruction_sets(common); });
}

// Ranks that a launcher bound to cores of their own have these; others share what they have.
void share_cores(dist::Group& group, const CommonOptions& options) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ::sched_getaffinity(0, sizeof mask, &mask);
  const std::vector<cpu_set_t> masks = group.all_gather_values(mask);
  int sharing = 0;
  for (uint32_t r = 0; r < group.size(); ++r)
    if (group.host(r) == group.host(group.rank()) && CPU_EQUAL(&masks[r], &mask)) ++sharing;
  if (options.threads == 0) set_thread_count(std::max(1, usable_cores() / sharing));
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const int all = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)) / static_cast<int>(group.ranks_on_this_host());
  if (options.threads == 0 && cores < all)
    log::note("the launcher bound this process to {} of {} cores; mpirun --bind-to none leaves them free", cores, all);
}

}  // namespace

void run_in_group(const dist::GroupOptions& options, const CommonOptions& common,
                  const std::function<void(dist::Group& group)>& work) {
  dist::run_in_group(options, [&](dist::Group& group) {
    if (group.size() > 1) {
      group.require_same("the version of clustergcn", describe_program(), "install the same on every host");
      agree_on_instructions(group);
      share_cores(group, common);
    }
    work(group);
  });
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
      return "none (identity matrix)";
    case FeatureMatrix::Kind::kSparse:
      break;
  }
  return fmt::format("{}, sparse, {:.1f} non-zeros per node", format_count(features.columns()),
                     static_cast<double>(features.num_entries()) / std::max<NodeId>(1, features.rows()));
}

}  // namespace cgcn
