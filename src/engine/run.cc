#include "engine/run.h"

#include "common/error.h"
#include "common/log.h"

namespace cgcn {
namespace {

void settle(RunRequest& request, uint32_t processes) {
  request.settings.processes = processes;
  if (request.resume)
    request.settings.settle_resumed(request.run);
  else
    request.settings.settle();
  if (request.resume && request.store.empty()) request.store = store_of_run(request.run);
  if (request.store.empty()) throw Error("is missing", "STORE", "clustergcn train STORE");
}

// The first rank read the files: the others have its settings.
void share(RunRequest& request, dist::Group& group) {
  if (group.size() == 1) return;
  std::string text = request.store + '\0';
  for (const Option& option : request.settings.list.all()) text += option.text() + '\0';
  const std::string shared = group.broadcast(text);
  size_t at = 0;
  const auto next = [&] {
    const std::string value = shared.c_str() + at;
    at += value.size() + 1;
    return value;
  };
  request.store = next();
  for (Option& option : request.settings.list.all()) option.set(next(), "--" + option.name());
}

// What differs from the defaults; config.toml has everything.
void show(const RunSettings& settings) {
  std::string text;
  for (const Option& option : settings.list.all())
    if (!option.is_default()) text += " " + option.command_line();
  log::note("settings:{}", text.empty() ? " the defaults" : text);
}

}  // namespace

Run::Run(RunRequest& request, dist::Group& group) : request_(request), group_(group) {
  group.on_first([&] { settle(request, group.size()); });
  share(request, group);
  group.together([&] { store_.emplace(request.store); });
  data_ = store_->dataset();
  group.together([&] {
    directory_.emplace(!group.is_first() ? RunDirectory::nowhere()
                       : request.resume  ? RunDirectory::reopen(request.run)
                                         : RunDirectory::create(request.run, data_.name));
  });
  show(request.settings);
  request.settings.options.data = traits_of(data_);
}

void Run::prepare() {
  training_.emplace(*store_, request_.settings.options, std::move(*directory_), group_);
  directory_.reset();
}

}  // namespace cgcn
