#include "engine/run.h"

#include "common/error.h"
#include "common/log.h"

namespace cgcn {
namespace {

// What was given, and with it the store.
void take_given(RunRequest& request, uint32_t processes) {
  request.settings.processes = processes;
  if (request.resume) {
    request.settings.settle_resumed(request.run);
    if (request.store.empty()) request.store = store_of_run(request.run);
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
