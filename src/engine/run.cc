#include "engine/run.h"

#include <algorithm>
#include <charconv>

#include "common/error.h"
#include "common/log.h"

namespace cgcn {
namespace {

constexpr std::string_view kSeedPrefix = "seed-";

fs::path seed_folder(const fs::path& all, uint64_t seed) { return all / fmt::format("{}{}", kSeedPrefix, seed); }

// Of a folder of several seeds: the run whose settings the others have, too.
std::string first_seed_run(const std::string& all) {
  if (all.empty()) throw Error("needs the run folder", "--resume", "--run DIR");
  std::optional<uint64_t> lowest;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(all, problem)) {
    const std::string name = entry.path().filename().string();
    uint64_t seed = 0;
    const char *begin = name.c_str() + kSeedPrefix.size(), *end = name.c_str() + name.size();
    if (!name.starts_with(kSeedPrefix) || !RunDirectory::is_run(entry.path())) continue;
    if (const auto [stop, bad] = std::from_chars(begin, end, seed); bad == std::errc() && stop == end)
      lowest = std::min(seed, lowest.value_or(seed));
  }
  if (!lowest) throw Error("holds no run of a seed", all, "train without --resume");
  return seed_folder(all, *lowest).string();
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

void settle(RunRequest& request, const Dataset& data) {
  if (request.resume) return;
  request.settings.settle(data);
  for (const Choice& choice : request.settings.choices)
    log::note("auto: {}: {}", request.settings.list.find(choice.option)->command_line(), choice.reason);
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
  group.on_first([&] { settle(request, data_); });
  share(request.settings, group);
  request.settings.options.data = traits_of(data_);
}

void Run::begin_in(const fs::path& folder, bool resume) {
  training_.reset();
  group_.together([&] {
    directory_.emplace(!group_.is_first() ? RunDirectory::nowhere()
                       : resume           ? RunDirectory::reopen(folder)
                                          : RunDirectory::create(folder, data_.name));
  });
  show(request_.settings);
}

void Run::begin() { begin_in(request_.run, request_.resume); }

// Resumed: those that were started continue, the others follow.
void Run::begin_seed(const fs::path& all, uint64_t n) {
  const fs::path folder = seed_folder(all, n);
  request_.settings.options.train.seed = n;
  begin_in(folder, request_.resume && RunDirectory::is_run(folder));
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
  training_.emplace(*store_, request_.settings.options, std::move(*directory_), group_);
  directory_.reset();
}

}  // namespace cgcn
