// What the public classes are made of.
#pragma once

#include <optional>

#include "clustergcn/clustergcn.h"
#include "common/error.h"
#include "common/session.h"
#include "common/threads.h"
#include "engine/memory_folder.h"
#include "graph/store.h"
#include "train/run_options.h"

namespace clustergcn {

struct Graph::Content {
  explicit Content(cgcn::Store opened) : store(std::move(opened)), data(store.dataset()) {}
  Content(cgcn::Dataset in_memory, std::shared_ptr<cgcn::MemoryFolder> kept_in)
      : folder(std::move(kept_in)), store(std::move(in_memory), folder->path()), data(store.dataset()) {}

  std::shared_ptr<cgcn::MemoryFolder> folder;  // of a graph that is in memory
  cgcn::Store store;
  cgcn::Dataset data;
};

struct Options::Content {
  Content() { values.list_options(list); }
  cgcn::RunOptions values;
  cgcn::OptionList list;
  std::string recipe;                                      // empty: chosen from the graph
  std::vector<std::pair<std::string, std::string>> given;  // by set(), in order
};

struct Model::Content {
  std::shared_ptr<cgcn::MemoryFolder> folder;
  cgcn::fs::path file;
  cgcn::PrecisionOptions precision;
};

// A call of the library: its session, its threads, and errors as the library has them.
template <class Work>
auto call(const Session& session, Work&& work) {
  cgcn::Session inner(session.log, session.wants_stop);
  const cgcn::SessionScope scope(&inner);
  const int cores = cgcn::usable_cores(), asked = static_cast<int>(session.threads);
  const cgcn::ThreadCountScope threads(asked > 0 && asked < cores ? asked : cores);
  try {
    return work();
  } catch (const cgcn::Error& error) {
    throw Error(error.what(), error.problem(), error.where(), error.hint());
  } catch (const cgcn::Interrupted& stopped) {
    throw Stopped(stopped.what(), stopped.what());
  } catch (const std::bad_alloc&) {
    throw Error("out of memory", "out of memory", "", "less data at a time, or memory=");
  }
}

// Values of options by name, '_' as good as '-'; returns the name as it is declared.
std::string set_option(cgcn::OptionList& list, std::string name, const std::string& value);

}  // namespace clustergcn
