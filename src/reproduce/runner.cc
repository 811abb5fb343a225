#include "reproduce/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>

#include "common/error.h"
#include "common/hash.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/progress.h"
#include "reproduce/program.h"
#include "train/run_directory.h"

namespace cgcn {
namespace {

using nlohmann::json;

// The value at "a.b" in a document; nullptr if there is none. A list of stages is searched by their names.
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

// For file names, which the page of curves shows; letters beyond ASCII stay.
std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte))
      result += byte >= 0x80 ? c : static_cast<char>(std::tolower(byte));
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

bool is_store(const fs::path& path) { return fs::exists(path / "meta.json"); }

// A graph as a cell uses it.
struct CellStore {
  fs::path path;
  std::string content;  // its hash
  bool real = false;    // imported; a store that `generate` made is not, wherever it lies
  double size = 1;      // against the paper's graph
};

CellStore open_store(const fs::path& path) {
  const json meta = parse_json(read_text_file(path / "meta.json"));
  const json* content = find_value(meta, "content_hash");
  return {.path = path,
          .content = content != nullptr && content->is_string() ? content->get<std::string>() : std::string(),
          .real = find_value(meta, "extra.import") != nullptr};
}

// The same graph in a folder of its own, without the partitions and A·X that are there: those of the user stay as they
// are, and what is timed is not found ready. Links, since the files of a store never change.
void link_store(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from))
    if (entry.is_regular_file()) fs::create_symlink(fs::canonical(entry.path()), to / entry.path().filename());
}

// One `reproduce` at a time for a folder: another would take a run in progress for one that was stopped.
class OutputLock {
 public:
  explicit OutputLock(const fs::path& folder) {
    fs::create_directories(folder);
    const fs::path file = folder / "lock";
    // Left open in the cells' processes: one that outlives this program still holds the folder.
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT, 0644);
    if (lock_ < 0) throw Error(fmt::format("cannot write: {}", std::strerror(errno)), file.string());
    if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
    const int why = errno;
    ::close(lock_);
    if (why != EWOULDBLOCK) throw Error(fmt::format("cannot lock: {}", std::strerror(why)), file.string());
    throw Error("another reproduction is running in it", folder.string(),
                "wait until it has ended, or choose another --output");
  }
  ~OutputLock() { ::close(lock_); }
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  int lock_;
};

class Runner {
 public:
  Runner(const Experiment& experiment, const ReproduceOptions& options)
      : experiment_(experiment), options_(options), lock_(options.output) {}

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

  // The store of a graph: that of --data if it is there, else generated; made once and shared by experiments.
  CellStore find_store(const std::string& name) {
    const bool given = !options_.data.empty() && fs::exists(options_.data / name);
    const bool shrunk = !given && options_.scale == ReproduceScale::kSmall && experiment_.small_data != 1 &&
                        experiment_data(name).generate[0] == "--like";
    CellStore store = open_store(!given                           ? generated_store(name, shrunk)
                                 : is_store(options_.data / name) ? options_.data / name
                                                                  : imported_store(name));
    if (shrunk) store.size = experiment_.small_data;
    notes_.insert(store.real ? fmt::format("{}: the real graph", name)
                  : given    ? fmt::format("{}: generated, from --data", name)
                  : shrunk   ? fmt::format("{}: generated, {:g} times the size of the paper's graph", name, store.size)
                             : fmt::format("{}: generated, as large as the paper's graph", name));
    return store;
  }

  fs::path imported_store(const std::string& name) {
    const fs::path source = options_.data / name;
    const std::string state = digest({fs::canonical(source).string(), folder_state(source)});
    return make_store(fmt::format("{}-real-{}", name, state), {"import", source.string()}, {});
  }

  fs::path generated_store(const std::string& name, bool shrunk) {
    std::vector<std::string> shape = experiment_data(name).generate;
    if (shrunk) shape.insert(shape.end(), {"--scale", fmt::format("{:g}", experiment_.small_data)});
    std::vector<std::string> key = shape;
    key.push_back(options_.version);
    return make_store(fmt::format("{}-generated-{}", name, digest(key)), {"generate"}, shape);
  }

  fs::path make_store(const std::string& folder, std::vector<std::string> words, const std::vector<std::string>& more) {
    const fs::path store = options_.output / "stores" / folder;
    if (is_store(store)) return store;
    fs::create_directories(store.parent_path());
    words.push_back(store.string());
    words.insert(words.end(), more.begin(), more.end());
    fs::path output = store;
    output += ".txt";
    run_program(options_.program, words, output);
    return store;
  }

  CellResult run_cell(const Cell& cell) {
    CellResult result{.cell = cell};
    if (!cell.runs) {
      result.figures.resize(experiment_.figures.size(), NAN);
      result.lists.resize(experiment_.histograms.size());
      return result;
    }
    const CellStore store = find_store(cell.data);
    result.real = store.real;
    result.size = store.size;
    std::vector<std::string> words = {experiment_.command, store.path.string(), "--json"};
    if (options_.threads > 0) words.insert(words.end(), {"--threads", std::to_string(options_.threads)});
    const size_t shared = words.size();  // so many words a resumed run gets too
    words.insert(words.end(), cell.options.begin(), cell.options.end());
    if (experiment_.command == "train" && std::find(words.begin(), words.end(), "--recipe") == words.end())
      words.insert(words.end(), {"--recipe", "none"});  // nothing that the experiment does not say
    std::vector<std::string> key = words;  // another program, or another graph under the same name, is another cell
    key.insert(key.end(), {options_.version, store.content});
    const std::string name =
        fmt::format("{}--{}--{}-{}", slug(cell.row), slug(cell.column), result.data_kind(), digest(key));
    const fs::path kept = cell_folder() / (name + ".json");
    if (experiment_.command == "train") result.run = cell_folder() / (name + ".run");
    if (!fs::exists(kept)) {
      const fs::path output = cell_folder() / (name + ".out"), view = cell_folder() / (name + ".store");
      if (!result.run.empty()) {
        go_on_or_begin(result.run, words, shared);
      } else {
        link_store(store.path, view);
        words[1] = view.string();
      }
      run_program(options_.program, words, output);
      fs::remove_all(view);
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

  // A run that was stopped is resumed if it has a checkpoint, and begun again if it has none. A resumed run has
  // its own configuration: of the words only the first `shared` ones hold for it.
  static void go_on_or_begin(const fs::path& run, std::vector<std::string>& words, size_t shared) {
    const bool resume = fs::exists(RunFiles(run).last());
    if (resume)
      words.resize(shared);
    else
      fs::remove_all(run);
    words.insert(words.end(), {"--run", run.string()});
    if (resume) words.push_back("--resume");
  }

  // Validation scores at a quarter, half, three quarters and the end of training: curve.25 … curve.100.
  static void add_curve(const fs::path& run, json& document) {
    std::ifstream file(RunFiles(run).metrics());
    std::vector<double> scores;
    for (std::string line; std::getline(file, line);) {
      const json record = parse_json(line);
      const double score = record.is_discarded() ? NAN : read_figure(record, "validation.micro_f1");
      scores.push_back(std::isnan(score) && !scores.empty() ? scores.back() : score);
    }
    if (scores.empty()) return;
    for (const int share : {25, 50, 75, 100})
      document["curve"][std::to_string(share)] = scores[std::max<size_t>(1, scores.size() * share / 100) - 1];
    document["curve"]["best"] =
        *std::max_element(scores.begin(), scores.end(), [](double a, double b) { return std::isnan(a) || a < b; });
  }

  const Experiment& experiment_;
  const ReproduceOptions& options_;
  const OutputLock lock_;
  std::set<std::string> notes_;
};

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

}  // namespace cgcn
