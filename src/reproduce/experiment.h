// The paper's tables and figures as data: which runs fill which cells, and what the paper printed there.
//
// An experiment is a grid of cells: two axes whose values each add options to one command, and some figures read from
// what the command prints as JSON. experiments/NAME/experiment.toml holds them; docs/reproduction.md says how.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cgcn {

enum class ReproduceScale { kSmall, kPaper };
const char* scale_name(ReproduceScale scale);

// A number of a cell: where it stands in the command's output ("test.micro_f1", or several joined by "+"), and how it
// is shown.
struct CellFigure {
  std::string key, label;
  double factor = 1;
  int digits = 1;
};

// A list of numbers of a cell, shown as how many of them lie in each bin.
struct CellHistogram {
  std::string key, label;
  double width = 1;
};

struct AxisValue {
  std::string name;
  std::string data;  // the graph; rows choose it
  std::vector<std::string> options;
  std::map<ReproduceScale, std::vector<std::string>> scale_options;
  bool runs = true;  // false: only what the paper printed is shown
};

struct Cell {
  std::string row, column;
  std::string data;
  std::vector<std::string> options = {};  // of the command
  std::vector<double> published = {};     // the paper's figures in the same order; NaN: none
  bool runs = true;
};

struct Experiment {
  std::string name, title, paper, question;
  std::string command = "train";
  std::string row_title;
  std::vector<CellFigure> figures;
  std::vector<CellHistogram> histograms;
  std::vector<AxisValue> rows, columns;
  std::vector<std::string> options;
  std::map<ReproduceScale, std::vector<std::string>> scale_options;
  double small_data = 1;  // size of generated graphs at the small scale
  std::map<std::pair<std::string, std::string>, std::vector<double>> published;

  std::vector<Cell> cells(ReproduceScale scale) const;
};

struct ExperimentText {
  std::string name, toml;
};
const std::vector<ExperimentText>& experiment_texts();  // made at build time from experiments/

Experiment parse_experiment(const ExperimentText& text);  // throws Error
std::vector<Experiment> all_experiments();
Experiment find_experiment(const std::string& name);  // throws Error that suggests the nearest

// A graph that experiments use: the folder under --data that holds it, and what is generated if it is not there.
struct ExperimentData {
  std::string name;
  std::vector<std::string> generate;  // options of `clustergcn generate`
};
const ExperimentData& experiment_data(const std::string& name);

}  // namespace cgcn
