// Runs the cells of an experiment one after another, each as a process of its own, so that its time and memory are its
// own. What a cell printed is kept: a run that was interrupted goes on where it stopped.
#pragma once

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

// The figures of a cell; NaN where the output has none.
struct CellResult {
  Cell cell;
  std::vector<double> figures = {};
  std::vector<std::vector<double>> lists = {};  // for each histogram
  fs::path run = {};                            // of `train`; empty for other commands
  bool real = false;                            // of a real graph, not a generated one

  const char* data_kind() const { return !cell.runs ? "published" : real ? "real" : "generated"; }
};

struct ExperimentResult {
  std::vector<CellResult> cells;
  std::vector<std::string> data_notes;  // "ppi: generated, a graph of the same shape", one for each graph
};

ExperimentResult run_experiment(const Experiment& experiment, const ReproduceOptions& options);

// The curves of all training cells on one page; returns its path, empty where there are none.
fs::path write_report(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options);

// "a.b+c.d" in a JSON document; a list of stages is searched by their names. NaN where it is not there.
double read_figure(const nlohmann::json& document, const std::string& key);

// The tables, ours beside the paper's.
std::string to_markdown(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options);

}  // namespace cgcn
