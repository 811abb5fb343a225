// Runs the cells of an experiment one after another, each as a process of its own, so that its time and memory are its
// own. What a cell printed is kept: an interrupted reproduction continues where it stopped.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/file.h"
#include "reproduce/experiment.h"

namespace cgcn {

struct ReproduceOptions {
  ReproduceScale scale = ReproduceScale::kSmall;
  fs::path data = {};     // folder with graphs by name; empty: none
  fs::path output = {};   // results, runs and generated graphs
  fs::path program = {};  // clustergcn itself
  std::string version = {};
  uint32_t threads = 0;  // of each cell; 0: all
};

// The figures of a cell; NaN if the output has none.
struct CellResult {
  Cell cell;
  std::vector<double> figures = {};
  std::vector<std::vector<double>> lists = {};  // for each histogram
  fs::path run = {};                            // of `train`; empty for other commands
  bool real = false;                            // of a real graph, not a generated one
  double size = 1;                              // of the graph, against the paper's

  const char* data_kind() const { return !cell.runs ? "published" : real ? "real" : "generated"; }
  std::string graph() const { return size == 1 ? data_kind() : fmt::format("{}, {:g} × size", data_kind(), size); }
};

struct ExperimentResult {
  std::vector<CellResult> cells;
  std::vector<std::string> data_notes;  // "ppi: generated, a graph of the same shape", one for each graph
};

ExperimentResult run_experiment(const Experiment& experiment, const ReproduceOptions& options);

// The curves of all training cells on one page; returns its path, empty if there are none.
fs::path write_report(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options);

// "a.b+c.d" in a JSON document; a list of stages is searched by their names. NaN if it is missing.
double read_figure(const nlohmann::json& document, const std::string& key);

// The tables, ours and the paper's in columns of their own, with the size of the graph on each row.
enum class TableFormat { kText, kMarkdown, kHtml };
std::string show_tables(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options,
                        TableFormat format);

}  // namespace cgcn
