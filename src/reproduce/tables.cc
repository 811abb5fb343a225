// The tables of an experiment in Markdown.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reproduce/runner.h"

namespace cgcn {
namespace {

std::string show(double value, int digits) { return std::isnan(value) ? "–" : fmt::format("{:.{}f}", value, digits); }

// A row's name never stands without what its figures are of.
std::string row_name(const Experiment& experiment, const ExperimentResult& result, size_t row) {
  const auto first = result.cells.begin() + static_cast<ptrdiff_t>(row * experiment.columns.size());
  const auto last = first + static_cast<ptrdiff_t>(experiment.columns.size());
  const auto ran = std::find_if(first, last, [](const CellResult& cell) { return cell.cell.runs; });
  return fmt::format("{} ({})", experiment.rows[row].name, (ran == last ? first : ran)->data_kind());
}

// One row of the experiment: bins downwards, its columns beside one another.
std::string histogram_table(const Experiment& experiment, const ExperimentResult& result, size_t which, size_t row) {
  const CellHistogram& histogram = experiment.histograms[which];
  const size_t columns = experiment.columns.size();
  std::map<int64_t, std::vector<size_t>> bins;
  for (size_t c = 0; c < columns; ++c)
    for (const double value : result.cells[row * columns + c].lists.at(which)) {
      auto& counts = bins[static_cast<int64_t>(std::floor(value / histogram.width))];
      counts.resize(columns);
      ++counts[c];
    }
  std::string text = fmt::format("\n| {}, {} |", row_name(experiment, result, row), histogram.label);
  std::string rule = "\n| --- |";
  for (const AxisValue& column : experiment.columns) {
    text += fmt::format(" {} |", column.name);
    rule += " ---: |";
  }
  text += rule;
  if (bins.empty()) return text + "\n";
  for (int64_t bin = bins.begin()->first; bin <= bins.rbegin()->first; ++bin) {
    text += fmt::format("\n| {:g} – {:g} |", static_cast<double>(bin) * histogram.width,
                        static_cast<double>(bin + 1) * histogram.width);
    std::vector<size_t> counts = bins[bin];
    counts.resize(columns);
    for (const size_t count : counts) text += fmt::format(" {} |", count);
  }
  return text + "\n";
}

std::string figure_table(const Experiment& experiment, const ExperimentResult& result, size_t which) {
  const CellFigure& figure = experiment.figures[which];
  std::string text = fmt::format("\n| {} (the paper's in brackets) |", figure.label), rule = "\n| --- |";
  for (const AxisValue& column : experiment.columns) {
    text += fmt::format(" {} |", column.name);
    rule += " --- |";
  }
  text += rule;
  for (size_t r = 0; r < experiment.rows.size(); ++r) {
    text += fmt::format("\n| {} |", row_name(experiment, result, r));
    for (size_t c = 0; c < experiment.columns.size(); ++c) {
      const CellResult& cell = result.cells[r * experiment.columns.size() + c];
      const double published = cell.cell.published[which];
      text += fmt::format(" {}{} |", show(cell.figures[which], figure.digits),
                          std::isnan(published) ? "" : fmt::format(" ({})", show(published, figure.digits)));
    }
  }
  return text + "\n";
}

}  // namespace

std::string to_markdown(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options) {
  std::string text = fmt::format("## {} ({})\n\n{}\n\n", experiment.title, experiment.paper, experiment.question);
  text += fmt::format("    clustergcn reproduce {} --scale {}{}\n\n", experiment.name, scale_name(options.scale),
                      options.data.empty() ? "" : " --data DIR");
  for (const std::string& note : result.data_notes) text += fmt::format("- {}\n", note);
  for (size_t f = 0; f < experiment.figures.size(); ++f) text += figure_table(experiment, result, f);
  for (size_t h = 0; h < experiment.histograms.size(); ++h)
    for (size_t r = 0; r < experiment.rows.size(); ++r) text += histogram_table(experiment, result, h, r);
  text += "\nThe cells' commands, from the first row on:\n\n";
  for (const CellResult& cell : result.cells)
    if (cell.cell.runs)
      text += fmt::format("    {} {} {}\n", experiment.command, cell.cell.data, fmt::join(cell.cell.options, " "));
  return text;
}

}  // namespace cgcn
