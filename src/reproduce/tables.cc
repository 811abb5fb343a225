// The tables of an experiment: aligned text for a terminal, Markdown, or HTML.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reproduce/runner.h"

namespace cgcn {
namespace {

// A heading of two lines: the second tells ours from the paper's.
struct Heading {
  std::string above, below;
};

struct Table {
  std::string title;
  std::vector<Heading> headings;
  std::vector<std::vector<std::string>> rows;
  size_t names = 1;  // leading columns of text; the others are numbers
};

std::string show(double value, int digits) { return std::isnan(value) ? "–" : fmt::format("{:.{}f}", value, digits); }

size_t width_of(const std::string& text) {  // a UTF-8 character counts as one, a combining one as none
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    columns += (byte & 0xC0) != 0x80 && byte != 0xCC ? 1 : 0;
  }
  return columns;
}

// The graph of a row, which never stands without its size.
std::string row_graph(const Experiment& experiment, const ExperimentResult& result, size_t row) {
  const auto first = result.cells.begin() + static_cast<ptrdiff_t>(row * experiment.columns.size());
  const auto last = first + static_cast<ptrdiff_t>(experiment.columns.size());
  const auto ran = std::find_if(first, last, [](const CellResult& cell) { return cell.cell.runs; });
  return (ran == last ? first : ran)->graph();
}

Table figure_table(const Experiment& experiment, const ExperimentResult& result, size_t which) {
  const CellFigure& figure = experiment.figures[which];
  const size_t columns = experiment.columns.size();
  const auto published = [&](size_t row, size_t column) {
    return result.cells[row * columns + column].cell.published[which];
  };
  std::vector<bool> has_paper(columns);
  for (size_t c = 0; c < columns; ++c)
    for (size_t r = 0; r < experiment.rows.size(); ++r) has_paper[c] = has_paper[c] || !std::isnan(published(r, c));
  Table table{.title = figure.label, .headings = {{"", ""}, {"graph", ""}}, .rows = {}, .names = 2};
  for (size_t c = 0; c < columns; ++c) {
    table.headings.push_back({experiment.columns[c].name, "ours"});
    if (has_paper[c]) table.headings.push_back({experiment.columns[c].name, "paper"});
  }
  for (size_t r = 0; r < experiment.rows.size(); ++r) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {experiment.rows[r].name, row_graph(experiment, result, r)};
    for (size_t c = 0; c < columns; ++c) {
      row.push_back(show(result.cells[r * columns + c].figures[which], figure.digits));
      if (has_paper[c]) row.push_back(show(published(r, c), figure.digits));
    }
  }
  return table;
}

// One row of the experiment: one line per bin, one column per column.
Table histogram_table(const Experiment& experiment, const ExperimentResult& result, size_t which, size_t row) {
  const CellHistogram& histogram = experiment.histograms[which];
  const size_t columns = experiment.columns.size();
  std::map<int64_t, std::vector<size_t>> bins;
  for (size_t c = 0; c < columns; ++c)
    for (const double value : result.cells[row * columns + c].lists.at(which)) {
      auto& counts = bins[static_cast<int64_t>(std::floor(value / histogram.width))];
      counts.resize(columns);
      ++counts[c];
    }
  Table table{.title = fmt::format("{} ({})", experiment.rows[row].name, row_graph(experiment, result, row)),
              .headings = {{histogram.label, ""}},
              .rows = {}};
  for (const AxisValue& column : experiment.columns) table.headings.push_back({column.name, ""});
  if (bins.empty()) return table;
  for (int64_t bin = bins.begin()->first; bin <= bins.rbegin()->first; ++bin) {
    std::vector<size_t> counts = bins[bin];
    counts.resize(columns);
    std::vector<std::string>& line = table.rows.emplace_back();
    line.push_back(fmt::format("{:g} – {:g}", static_cast<double>(bin) * histogram.width,
                               static_cast<double>(bin + 1) * histogram.width));
    for (const size_t count : counts) line.push_back(std::to_string(count));
  }
  return table;
}

std::string joined(const Heading& heading) {
  return heading.below.empty() ? heading.above : heading.above + ", " + heading.below;
}

std::string to_text(const Table& table) {
  std::vector<size_t> widths;
  for (const Heading& heading : table.headings) {
    const bool repeated = !widths.empty() && heading.below == "paper";  // the name stands above the column before
    widths.push_back(std::max(repeated ? 0 : width_of(heading.above), width_of(heading.below)));
  }
  for (const auto& row : table.rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string text = table.title + "\n\n";
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string word = cell(c);
      const std::string blanks(widths[c] - std::min(widths[c], width_of(word)), ' ');
      line += "  " + (c < table.names ? word + blanks : blanks + word);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](size_t c) { return table.headings[c].below == "paper" ? std::string() : table.headings[c].above; });
  if (std::any_of(table.headings.begin(), table.headings.end(), [](const Heading& h) { return !h.below.empty(); }))
    add_line([&](size_t c) { return table.headings[c].below; });
  add_line([&](size_t c) {
    std::string rule;
    for (size_t i = 0; i < widths[c]; ++i) rule += "─";
    return rule;
  });
  for (const auto& row : table.rows) add_line([&](size_t c) { return row[c]; });
  return text + "\n";
}

std::string to_markdown(const Table& table) {
  std::string text = fmt::format("{}\n\n|", table.title), rule = "\n|";
  for (size_t c = 0; c < table.headings.size(); ++c) {
    text += fmt::format(" {} |", joined(table.headings[c]));
    rule += c < table.names ? " --- |" : " ---: |";
  }
  text += rule;
  for (const auto& row : table.rows) text += fmt::format("\n| {} |", fmt::join(row, " | "));
  return text + "\n\n";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string to_html(const Table& table) {
  std::string text = fmt::format("<table>\n<caption>{}</caption>\n<tr>", escaped(table.title));
  for (const Heading& heading : table.headings) text += fmt::format("<th>{}</th>", escaped(joined(heading)));
  for (const auto& row : table.rows) {
    text += "</tr>\n<tr>";
    for (size_t c = 0; c < row.size(); ++c)
      text += fmt::format("<td{}>{}</td>", c < table.names ? "" : " class=\"number\"", escaped(row[c]));
  }
  return text + "</tr>\n</table>\n";
}

constexpr const char* kPageHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
    "content=\"width=device-width\">\n<title>{}</title>\n<style>body {{ font: 15px/1.5 sans-serif; max-width: 70em; "
    "margin: "
    "2em auto; padding: 0 1em; }} table {{ border-collapse: collapse; margin: 1.5em 0; display: block; overflow-x: "
    "auto; }} "
    "caption {{ text-align: left; font-weight: bold; }} th, td {{ padding: 0.3em 0.8em; border-bottom: 1px solid #ddd; "
    "text-align: left; }} .number {{ text-align: right; }} pre {{ overflow-x: auto; }}</style>\n";

// What has to be known before a figure is compared with the paper's.
std::string caution(const ExperimentResult& result, const ReproduceOptions& options) {
  const bool shrunk =
      std::any_of(result.cells.begin(), result.cells.end(), [](const CellResult& c) { return c.size != 1; });
  if (options.scale == ReproduceScale::kPaper && !shrunk) return {};
  return fmt::format(
      "Not at the paper's size: {}. The paper's figures are for its full graphs and models; compare the order "
      "of the cells, not their values.",
      shrunk ? "graphs are scaled down as each row says, models and epochs too" : "models and epochs are scaled down");
}

}  // namespace

std::string show_tables(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options,
                        TableFormat format) {
  std::vector<Table> tables;
  for (size_t f = 0; f < experiment.figures.size(); ++f) tables.push_back(figure_table(experiment, result, f));
  for (size_t h = 0; h < experiment.histograms.size(); ++h)
    for (size_t r = 0; r < experiment.rows.size(); ++r) tables.push_back(histogram_table(experiment, result, h, r));
  const std::string title = fmt::format("{} ({})", experiment.title, experiment.paper);
  const std::string command = fmt::format("clustergcn reproduce {} --scale {}{}", experiment.name,
                                          scale_name(options.scale), options.data.empty() ? "" : " --data DIR");
  std::vector<std::string> notes = result.data_notes;
  if (const std::string text = caution(result, options); !text.empty()) notes.push_back(text);
  std::string commands;
  for (const CellResult& cell : result.cells)
    if (cell.cell.runs)
      commands += fmt::format("    clustergcn {} {} {}\n", experiment.command, cell.cell.data,
                              fmt::join(cell.cell.options, " "));
  std::string text;
  if (format == TableFormat::kHtml) {
    text = fmt::format(fmt::runtime(kPageHead), escaped(title));
    text += fmt::format("<h1>{}</h1>\n<p>{}</p>\n<pre>{}</pre>\n<ul>\n", escaped(title), escaped(experiment.question),
                        escaped(command));
    for (const std::string& note : notes) text += fmt::format("<li>{}</li>\n", escaped(note));
    text += "</ul>\n";
    for (const Table& table : tables) text += to_html(table);
    return text + fmt::format("<p>Commands of the cells:</p>\n<pre>{}</pre>\n</html>\n", escaped(commands));
  }
  const bool markdown = format == TableFormat::kMarkdown;
  text = fmt::format("{}{}\n\n{}\n\n    {}\n\n", markdown ? "## " : "", title, experiment.question, command);
  for (const std::string& note : notes) text += fmt::format("- {}\n", note);
  text += "\n";
  for (const Table& table : tables) text += markdown ? to_markdown(table) : to_text(table);
  return markdown ? text + "Commands of the cells:\n\n" + commands : text;
}

}  // namespace cgcn
