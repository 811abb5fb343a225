#include "engine/run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/error.h"
#include "common/log.h"
#include "train/seed_runs.h"

namespace cgcn {
namespace {

// Of a folder of several seeds: the run whose settings the others have, too.
std::string first_seed_run(const std::string& all) {
  if (all.empty()) throw Error("needs the run folder", "--resume", "--run DIR");
  const std::vector<uint64_t> seeds = seeds_in(all);
  if (seeds.empty()) throw Error("holds no run of a seed", all, "train without --resume");
  return seed_folder(all, seeds.front()).string();
}

// What was given, and with it the store.
void take_given(RunRequest& request, uint32_t processes) {
  request.settings.processes = processes;
  if (request.resume) {
    const std::string configured = request.seeds > 1 ? first_seed_run(request.run) : request.run;
    request.settings.settle_resumed(configured);
    if (request.store.empty()) request.store = store_of_run(configured);
  } else {
    request.settings.check();
  }
  if (request.store.empty()) throw Error("is missing", "STORE", "clustergcn train STORE");
}

void settle(RunRequest& request, const Store& store) {
  if (request.resume) return;
  request.settings.settle(store);
  for (const std::string& line : request.settings.choice_lines()) log::note("auto: {}", line);
}

// The first rank read the files: the others have its settings.
void share(RunSettings& settings, dist::Group& group) {
  if (group.size() == 1) return;
  std::string text;
  for (const Option& option : settings.list.all()) text += option.text() + '\0';
  const std::string shared = group.broadcast(text);
  size_t at = 0;
  for (Option& option : settings.list.all()) {
    const std::string value = shared.c_str() + at;
    at += value.size() + 1;
    option.set(value, "--" + option.name());
  }
}

// What differs from the fixed defaults, to be pasted; config.toml has everything.
void show(const RunSettings& settings) {
  std::string text;
  for (const Option& option : settings.list.all())
    if (!option.is_default()) text += " " + option.command_line();
  log::note("settings: --recipe none{}", text);
}

}  // namespace

Run::Run(RunRequest& request, dist::Group& group) : request_(request), group_(group) {
  group.on_first([&] { take_given(request, group.size()); });
  if (group.size() > 1) request.store = group.broadcast(request.store);
  group.together([&] { store_.emplace(request.store); });
  data_ = store_->dataset();
}

// Choosing may take minutes: it begins once there is a folder.
void Run::settle_once() {
  if (std::exchange(settled_, true)) return;
  group_.on_first([&] { settle(request_, *store_); });
  share(request_.settings, group_);
  request_.settings.options.data = traits_of(data_);
}

void Run::begin_in(const fs::path& folder, bool resume, std::optional<uint64_t> seed) {
  training_.reset();
  group_.together([&] {
    directory_.emplace(!group_.is_first() ? RunDirectory::nowhere()
                       : resume           ? RunDirectory::reopen(folder)
                                          : RunDirectory::create(folder, data_.name));
  });
  settle_once();
  if (seed) request_.settings.options.train.seed = *seed;
  group_.on_first([&] {
    if (directory_->is_new()) request_.settings.record_choices(directory_->files());
  });
  show(request_.settings);
}

void Run::begin() { begin_in(request_.run, request_.resume, {}); }

// Resumed: those that were started continue, the others follow.
void Run::begin_seed(const fs::path& all, uint64_t n) {
  const fs::path folder = seed_folder(all, n);
  begin_in(folder, request_.resume && RunDirectory::is_run(folder), n);
}

std::vector<uint64_t> Run::seeds(const fs::path& folder) const {
  std::vector<uint64_t> seeds(request_.seeds);
  std::iota(seeds.begin(), seeds.end(), request_.settings.options.train.seed);
  group_.on_first([&] {
    if (!request_.resume) return;
    for (const uint64_t seed : seeds_in(folder)) seeds.push_back(seed);
    std::sort(seeds.begin(), seeds.end());
    seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
  });
  uint64_t count = group_.broadcast_value(static_cast<uint64_t>(seeds.size()));
  seeds.resize(count);
  group_.broadcast(std::as_writable_bytes(std::span(seeds)));
  return seeds;
}

fs::path Run::folder_of_seeds() const {
  fs::path folder = request_.run;
  group_.on_first([&] {
    std::error_code problem;
    for (uint32_t n = 1; request_.run.empty() && (n == 1 || fs::exists(folder, problem)); ++n)
      folder = fs::path("runs") / fmt::format("{}-seeds-{}", data_.name, n);
    if (!request_.resume && fs::exists(folder, problem) && !fs::is_empty(folder, problem))
      throw Error("already exists", folder.string(), "another --run, or --resume to continue it");
  });
  return folder;
}

void Run::prepare() {
  // Of several seeds, the first one has the time of the choices.
  training_.emplace(*store_, request_.settings.options, std::move(*directory_), group_,
                    std::exchange(request_.settings.before, {}));
  directory_.reset();
}

}  // namespace cgcn
