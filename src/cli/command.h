// One subcommand of the program: a name, what it says in --help, its options, and what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/options.h"

namespace cgcn {

class FeatureMatrix;

// What every command has: --quiet, --json, --threads.
struct CommonOptions {
  bool quiet = false;
  bool json = false;
  uint32_t threads = 0;
  void list_options(OptionList& list);
};

// Declares every option of the list on the command. Values given on the command line are checked and stored by the list
// while CLI11 parses, so that a wrong one is one clear message.
void bind_options(CLI::App& command, OptionList& list);
// Names the options on the command line that change nothing, in one line on stderr, and returns the same for the
// `notes` of --json.
std::vector<std::string> note_unused_options(const CLI::App& command, const OptionList& list);
// Sets threads and the log level; call first in every command.
void apply_common_options(const CommonOptions& options);

// Four digits; large numbers whole, with commas: "0.01234", "16,004", "1.5e+12".
std::string show_number(double value);

// "140 of 2,708 nodes (5.2 %) and 43 of 5,278 edges (0.8 %)".
std::string describe_share(uint64_t nodes, uint64_t all_nodes, uint64_t edges, uint64_t all_edges);
// The same of what an inductive training sees, and what to do if that is little.
std::string describe_training_share(uint64_t nodes, uint64_t all_nodes, uint64_t edges, uint64_t all_edges);

// As the commands print them: "602, dense float32".
std::string describe_features(const FeatureMatrix& features);

// Each command file defines one of these and main.cc calls them all.
void add_info_command(CLI::App& program);
void add_import_command(CLI::App& program);
void add_download_command(CLI::App& program);
void add_generate_command(CLI::App& program);
void add_partition_command(CLI::App& program);
void add_train_command(CLI::App& program);
void add_evaluate_command(CLI::App& program);
void add_predict_command(CLI::App& program);
void add_report_command(CLI::App& program);
void add_reproduce_command(CLI::App& program);
void add_options_command(CLI::App& program);
void add_manual_command(CLI::App& program);

}  // namespace cgcn
