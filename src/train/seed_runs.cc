#include "train/seed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "train/run_directory.h"
#include "train/run_options.h"
#include "train/selection.h"

namespace cgcn {
namespace {

constexpr std::string_view kSeedPrefix = "seed-";

// Of the validation nodes, the higher the better, by what the run chose its model by; nothing if there were none.
struct ValidationScore {
  SelectBy by;
  double score;
};

std::optional<ValidationScore> validation_score(const RunFiles& files) {
  RunOptions options;
  OptionList list;
  options.list_options(list);
  read_toml(files.config(), list);
  const nlohmann::json result = parse_json(read_text_file(files.result())), scores = result.at("validation");
  SelectBy by = options.train.select_by;
  if (by == SelectBy::kAuto) by = result.at("regression").get<bool>() ? SelectBy::kR2 : SelectBy::kMicroF1;
  const std::string key = selection_key(by);
  if (scores.at("nodes") == 0 || !scores.contains(key)) return std::nullopt;
  return ValidationScore{by, shown_score(scores[key].get<double>(), by)};
}

}  // namespace

fs::path seed_folder(const fs::path& folder, uint64_t seed) { return folder / fmt::format("{}{}", kSeedPrefix, seed); }

std::vector<uint64_t> seeds_in(const fs::path& folder) {
  std::vector<uint64_t> seeds;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kSeedPrefix) || !RunDirectory::is_run(entry.path())) continue;
    uint64_t seed = 0;
    const char *begin = name.c_str() + kSeedPrefix.size(), *end = name.c_str() + name.size();
    if (const auto [stop, bad] = std::from_chars(begin, end, seed); bad == std::errc() && stop == end)
      seeds.push_back(seed);
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

fs::path best_of_seeds(const fs::path& path) {
  if (RunDirectory::is_run(path)) return path;
  const std::vector<uint64_t> seeds = seeds_in(path);
  if (seeds.empty()) return path;
  std::optional<uint64_t> best;
  std::optional<ValidationScore> highest;
  for (const uint64_t seed : seeds) {
    const RunFiles files(seed_folder(path, seed));
    std::error_code problem;
    if (!fs::exists(files.result(), problem)) continue;
    try {
      const std::optional<ValidationScore> reached = validation_score(files);
      if (best && !(reached && highest && reached->score > highest->score)) continue;
      best = seed;
      highest = reached;
    } catch (const nlohmann::json::exception& broken) {
      throw Error(fmt::format("is damaged: {}", broken.what()), files.result().string());
    }
  }
  if (!best) throw Error("no seed has finished", path.string(), "clustergcn train --run DIR --seeds N --resume");
  log::note("{}: seed {} of {}, {}", path.string(), *best, seeds.size(),
            highest ? "the best by validation " + show_selection(highest->score, highest->by)
                    : "the first: there are no validation nodes to choose by");
  return seed_folder(path, *best);
}

}  // namespace cgcn
