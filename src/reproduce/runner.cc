#include "reproduce/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "common/error.h"
#include "common/hash.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/log.h"
#include "common/progress.h"

extern char** environ;

namespace cgcn {
namespace {

using nlohmann::json;

std::string last_line(const fs::path& log) {
  std::string text = read_text_file(log), message;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.find("error") != std::string::npos || message.empty()) message = line;
    begin = end + 1;
  }
  return message;
}

// What stands at "a.b" in a document; nullptr where nothing does. A list of stages is searched by their names.
const json* find_value(const json& document, std::string_view path) {
  const json* at = &document;
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    const std::string name(path.substr(0, end));
    path.remove_prefix(std::min(path.size(), end + 1));
    if (at->is_array()) {
      const auto found = std::find_if(at->begin(), at->end(), [&](const json& item) {
        return item.is_object() && item.value("stage", std::string()) == name;
      });
      if (found == at->end()) return nullptr;
      at = &*found;
    } else {
      if (!at->is_object() || !at->contains(name)) return nullptr;
      at = &(*at)[name];
    }
  }
  return at;
}

double read_one(const json& document, std::string_view path) {
  const json* found = find_value(document, path);
  return found != nullptr && found->is_number() ? found->get<double>() : NAN;
}

std::vector<double> read_list(const json& document, std::string_view path) {
  std::vector<double> values;
  if (const json* found = find_value(document, path); found != nullptr && found->is_array())
    for (const json& value : *found)
      if (value.is_number()) values.push_back(value.get<double>());
  return values;
}

// Runs the program with its output in a file. Throws Error with the last message where it fails.
void run_program(const fs::path& program, const std::vector<std::string>& arguments, const fs::path& output) {
  fs::path log = output;
  log += ".log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // A group of its own: Ctrl-C reaches the child once, from here, and it saves. Twice would end it at once.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, program.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) throw Error(fmt::format("cannot be started: {}", std::strerror(failure)), program.string());
  int status = 0;
  bool told = false;
  for (pid_t ended = 0; ended != child;) {
    ended = ::waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR)
      throw Error(fmt::format("its end cannot be waited for: {}", std::strerror(errno)), program.string());
    if (ended == child) break;
    if (interrupted() && !told) {
      ::kill(child, SIGINT);
      told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw_if_interrupted();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw Error(fmt::format("failed: {}", last_line(log)), fmt::format("clustergcn {}", fmt::join(arguments, " ")),
              "see " + log.string());
}

std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result;
}

std::string digest(const std::vector<std::string>& words) {
  const std::string text = fmt::format("{}", fmt::join(words, "\n"));
  return hex64(checksum(text.data(), text.size())).substr(0, 8);
}

// Names, sizes and times of a folder's files: what tells that it has changed without reading it.
std::string folder_state(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files.push_back(fmt::format("{} {} {}", entry.path().lexically_relative(folder).string(), entry.file_size(),
                                  entry.last_write_time().time_since_epoch().count()));
  std::sort(files.begin(), files.end());
  return digest(files);
}

std::string store_content(const fs::path& store) {
  const json meta = parse_json(read_text_file(store / "meta.json"));
  return meta.is_object() ? meta.value("content_hash", std::string()) : std::string();
}

bool is_store(const fs::path& path) { return fs::exists(path / "meta.json"); }

class Runner {
 public:
  Runner(const Experiment& experiment, const ReproduceOptions& options) : experiment_(experiment), options_(options) {}

  ExperimentResult run() {
    const std::vector<Cell> cells = experiment_.cells(options_.scale);
    fs::create_directories(cell_folder());
    Progress progress(experiment_.name, cells.size(), "cells");
    ExperimentResult result;
    for (const Cell& cell : cells) {
      throw_if_interrupted();
      progress.set_note(fmt::format("{}, {}", cell.row, cell.column));
      result.cells.push_back(run_cell(cell));
      progress.advance();
    }
    result.data_notes.assign(notes_.begin(), notes_.end());
    return result;
  }

 private:
  fs::path cell_folder() const {
    return options_.output / fmt::format("{}-{}", experiment_.name, scale_name(options_.scale));
  }

  // The store of a graph: the real one where --data has it, else generated; made once and shared by experiments.
  fs::path find_store(const std::string& name) {
    const bool real = !options_.data.empty() && fs::exists(options_.data / name);
    const bool shrunk = !real && options_.scale == ReproduceScale::kSmall && experiment_.small_data != 1 &&
                        experiment_data(name).generate[0] == "--like";
    notes_.insert(real     ? fmt::format("{}: the real graph", name)
                  : shrunk ? fmt::format("{}: generated, {:g} of its size", name, experiment_.small_data)
                           : fmt::format("{}: generated, at its size", name));
    if (real && is_store(options_.data / name)) return options_.data / name;
    std::vector<std::string> source;
    if (real) {
      source = {"import", fs::canonical(options_.data / name).string(), folder_state(options_.data / name)};
    } else {
      source = experiment_data(name).generate;
      source.insert(source.begin(), "generate");
      if (shrunk) source.insert(source.end(), {"--scale", fmt::format("{:g}", experiment_.small_data)});
      source.push_back(options_.version);
    }
    const std::string folder = fmt::format("{}-{}-{}", name, real ? "real" : "generated", digest(source));
    const fs::path store = options_.output / "stores" / folder;
    if (is_store(store)) return store;
    fs::create_directories(store.parent_path());
    std::vector<std::string> words;
    if (real) {
      words = {"import", (options_.data / name).string(), store.string()};
    } else {
      words = {"generate", store.string()};
      words.insert(words.end(), source.begin() + 1, source.end() - 1);
    }
    fs::path output = store;
    output += ".txt";
    run_program(options_.program, words, output);
    return store;
  }

  CellResult run_cell(const Cell& cell) {
    const fs::path store = find_store(cell.data);
    std::vector<std::string> words = {experiment_.command, store.string(), "--json"};
    if (options_.threads > 0) words.insert(words.end(), {"--threads", std::to_string(options_.threads)});
    words.insert(words.end(), cell.options.begin(), cell.options.end());
    std::vector<std::string> key = words;  // another program, or another graph under the same name, is another cell
    key.insert(key.end(), {options_.version, store_content(store)});
    const std::string name = fmt::format("{}--{}-{}", slug(cell.row), slug(cell.column), digest(key));
    const fs::path kept = cell_folder() / (name + ".json");
    CellResult result{.cell = cell};
    if (experiment_.command == "train") result.run = cell_folder() / (name + ".run");
    if (!fs::exists(kept)) {
      if (!result.run.empty()) go_on_or_begin(result.run, words);
      const fs::path output = cell_folder() / (name + ".out");
      run_program(options_.program, words, output);
      fs::rename(output, kept);
    }
    json document = parse_json(read_text_file(kept));
    if (document.is_discarded())
      throw Error("does not hold what the command prints", kept.string(), "remove the file and run again");
    if (!result.run.empty()) add_curve(result.run, document);
    for (const CellFigure& figure : experiment_.figures)
      result.figures.push_back(figure.factor * read_figure(document, figure.key));
    for (const CellHistogram& histogram : experiment_.histograms)
      result.lists.push_back(read_list(document, histogram.key));
    return result;
  }

  // A run that was stopped is resumed where it has a checkpoint, and begun again where it has none.
  static void go_on_or_begin(const fs::path& run, std::vector<std::string>& words) {
    if (fs::exists(run / "last.safetensors")) {
      words = {words[0], words[1], "--json", "--run", run.string(), "--resume"};
      return;
    }
    fs::remove_all(run);
    words.insert(words.end(), {"--run", run.string()});
  }

  // Validation scores at a quarter, half, three quarters and the end of training: curve.25 … curve.100.
  static void add_curve(const fs::path& run, json& document) {
    std::ifstream file(run / "metrics.jsonl");
    std::vector<double> scores;
    for (std::string line; std::getline(file, line);) {
      const json record = parse_json(line);
      const double score = record.is_discarded() ? NAN : read_figure(record, "validation.micro_f1");
      scores.push_back(std::isnan(score) && !scores.empty() ? scores.back() : score);
    }
    if (scores.empty()) return;
    for (const int part : {25, 50, 75, 100})
      document["curve"][std::to_string(part)] = scores[std::max<size_t>(1, scores.size() * part / 100) - 1];
    document["curve"]["best"] =
        *std::max_element(scores.begin(), scores.end(), [](double a, double b) { return std::isnan(a) || a < b; });
  }

  const Experiment& experiment_;
  const ReproduceOptions& options_;
  std::set<std::string> notes_;
};

std::string show(double value, int digits) { return std::isnan(value) ? "–" : fmt::format("{:.{}f}", value, digits); }

}  // namespace

const char* scale_name(ReproduceScale scale) { return scale == ReproduceScale::kSmall ? "small" : "paper"; }

double read_figure(const json& document, const std::string& key) {
  double sum = 0;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('+', begin), key.size());
    sum += read_one(document, std::string_view(key).substr(begin, end - begin));
    begin = end + 1;
  }
  return sum;
}

namespace {

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
  std::string text = fmt::format("\n| {}, {} |", experiment.rows[row].name, histogram.label), rule = "\n| --- |";
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

}  // namespace

ExperimentResult run_experiment(const Experiment& experiment, const ReproduceOptions& options) {
  return Runner(experiment, options).run();
}

fs::path write_report(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options) {
  std::vector<std::string> words = {"report"};
  for (const CellResult& cell : result.cells)
    if (!cell.run.empty()) words.push_back(cell.run.string());
  if (words.size() == 1) return {};
  const fs::path page = options.output / fmt::format("{}-{}.html", experiment.name, scale_name(options.scale));
  words.insert(words.end(), {"-o", page.string()});
  fs::path printed = page;
  run_program(options.program, words, printed.replace_extension(".txt"));
  return page;
}

std::string to_markdown(const Experiment& experiment, const ExperimentResult& result, const ReproduceOptions& options) {
  std::string text = fmt::format("## {} ({})\n\n{}\n\n", experiment.title, experiment.paper, experiment.question);
  text += fmt::format("    clustergcn reproduce {} --scale {}{}\n\n", experiment.name, scale_name(options.scale),
                      options.data.empty() ? "" : " --data DIR");
  for (const std::string& note : result.data_notes) text += fmt::format("- {}\n", note);
  for (size_t f = 0; f < experiment.figures.size(); ++f) {
    const CellFigure& figure = experiment.figures[f];
    text += fmt::format("\n| {} (the paper's in brackets) |", figure.label);
    for (const AxisValue& column : experiment.columns) text += fmt::format(" {} |", column.name);
    text += "\n| --- |";
    for (size_t c = 0; c < experiment.columns.size(); ++c) text += " --- |";
    for (size_t r = 0; r < experiment.rows.size(); ++r) {
      text += fmt::format("\n| {} |", experiment.rows[r].name);
      for (size_t c = 0; c < experiment.columns.size(); ++c) {
        const CellResult& cell = result.cells[r * experiment.columns.size() + c];
        const double published = cell.cell.published[f];
        text += fmt::format(" {}{} |", show(cell.figures[f], figure.digits),
                            std::isnan(published) ? "" : fmt::format(" ({})", show(published, figure.digits)));
      }
    }
    text += "\n";
  }
  for (size_t h = 0; h < experiment.histograms.size(); ++h)
    for (size_t r = 0; r < experiment.rows.size(); ++r) text += histogram_table(experiment, result, h, r);
  text += "\nThe cells' commands, from the first row on:\n\n";
  for (const CellResult& cell : result.cells)
    text += fmt::format("    {} {} {}\n", experiment.command, cell.cell.data, fmt::join(cell.cell.options, " "));
  return text;
}

}  // namespace cgcn
