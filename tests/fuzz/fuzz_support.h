// What the fuzz targets share: a scratch folder in memory, and the import of files made from the fuzzer's bytes.
//
// An input holds the files of one source, one behind the other, with a line "===" between them. Whatever the bytes, a
// reader must either import them or throw Error; anything else (a crash, another exception, a hang) is a bug.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/log.h"
#include "common/threads.h"
#include "graph/store.h"
#include "io/reader.h"

namespace cgcn::fuzz {

inline const fs::path& scratch_folder() {
  static const fs::path folder = [] {
    log::set_level(log::Level::kQuiet);
    set_thread_count(1);
    std::error_code error;
    const bool in_memory = fs::is_directory("/dev/shm", error);
    std::string pattern = (in_memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "cgcn-fuzz-XXXXXX";
    static fs::path made = ::mkdtemp(pattern.data());
    std::atexit([] {
      std::error_code ignored;
      fs::remove_all(made, ignored);
    });
    return made;
  }();
  return folder;
}

inline std::vector<std::string_view> split_files(const uint8_t* data, size_t size) {
  constexpr std::string_view kBetween = "\n===\n";
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> files;
  for (;;) {
    const size_t at = rest.find(kBetween);
    files.push_back(rest.substr(0, at));
    if (at == std::string_view::npos) return files;
    rest.remove_prefix(at + kBetween.size());
  }
}

// The input as one file, or as many of the named files of a folder as it has.
inline fs::path write_input(const char* name, const uint8_t* data, size_t size) {
  const fs::path path = scratch_folder() / name;
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return path;
}
inline fs::path write_files(const char* name, const uint8_t* data, size_t size, std::vector<const char*> names) {
  const std::vector<std::string_view> files = split_files(data, size);
  const fs::path folder = scratch_folder() / name;
  fs::remove_all(folder);
  for (size_t i = 0; i < std::min(files.size(), names.size()); ++i) {
    fs::create_directories((folder / names[i]).parent_path());
    std::ofstream(folder / names[i], std::ios::binary) << files[i];
  }
  return folder;
}

// Error is what bad input must give.
template <class Use>
void attempt(Use&& use) {
  try {
    use();
  } catch (const Error&) {
  }
}

// Reads a value for the sanitizers to see.
template <class T>
void touch(const T& value) {
  [[maybe_unused]] const volatile T read = value;
}

// Writes the files, imports them, and reads the store again.
inline void import_files(const uint8_t* data, size_t size, const char* format, std::vector<const char*> names) {
  const fs::path source = write_files("source", data, size, std::move(names)), store = scratch_folder() / "store";
  try {
    ImportOptions options;
    options.format = format;
    ImportReport report;
    StoreWriter writer(store, StagedDirectory::Existing::kReplace);
    choose_reader(source, options).read(source, options, writer, report);
    writer.set_extra("lines", report.lines);
    writer.finish("fuzz");
  } catch (const Error&) {
    return;
  }
  const Store written(store);  // full verification: what was imported must be a sound store
}

}  // namespace cgcn::fuzz
