#include "engine/import.h"

#include <malloc.h>

#include <algorithm>
#include <stdexcept>

#include "common/error.h"

namespace cgcn {
namespace {

std::string name_of(const fs::path& source) {
  std::error_code problem;
  const fs::path whole = fs::weakly_canonical(source, problem).lexically_normal();  // "." has a name, too
  const fs::path last = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return last.stem().string();
}

// Runs are named after the graph.
void check_name(const std::string& name) {
  const bool plain =
      std::none_of(name.begin(), name.end(), [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7F; });
  if (!plain || name.starts_with('.') || name.size() > 200)
    throw std::invalid_argument("is a name of at most 200 characters, without '/' and not beginning with a dot");
}

}  // namespace

void ImportRequest::list_options(OptionList& list) {
  import.list_options(list);
  list.begin_group("Output");
  list.add("name", &name, "what the graph is called; otherwise the source's name").value("NAME").shape(check_name);
  list.add("force", &force, "replace the store if it exists");
  memory.list_options(list);
}

ImportResult import_store(const std::string& source, const std::string& store, ImportRequest request) {
  request.import.memory = request.memory.budget();
  const fs::path path = fs::path(source).lexically_normal();
  ImportResult result{choose_reader(path, request.import), {}};
  for (const std::string& file : {source, request.import.features, request.import.labels, request.import.split_file})
    if (request.force && !file.empty() && lies_within(file, store))
      throw Error("is what the import reads, and --force would delete it", file, "another name for the store");
  StoreWriter writer(store, request.force ? StagedDirectory::Existing::kReplace : StagedDirectory::Existing::kRefuse);
  result.reader.read(path, request.import, writer, result.report);
  ::malloc_trim(0);  // the edges are gone: what is mapped from here on is not to come on top of them
  if (request.name.empty()) request.name = !result.report.name.empty() ? result.report.name : name_of(path);
  writer.set_extra("import", {{"format", result.reader.name()}, {"lines", result.report.lines}});
  writer.finish(request.name);
  return result;
}

}  // namespace cgcn
