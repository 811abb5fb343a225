// What the tests of readers share: writing .npy files by hand, importing, and comparing stores.
#pragma once

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "graph/npy.h"
#include "io/reader.h"
#include "support.h"

namespace cgcn::test {

inline void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class T>
std::string raw_bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::string npy_bytes(const std::vector<T>& values, std::vector<uint64_t> shape, const std::string& dtype) {
  return make_npy_header(dtype, shape) + raw_bytes(values);
}
template <class T>
std::string npy_bytes(const std::vector<T>& values, std::vector<uint64_t> shape) {
  return npy_bytes(values, std::move(shape), DTypeOf<T>::name);
}
template <class T>
void write_npy(const fs::path& path, const std::vector<T>& values, std::vector<uint64_t> shape) {
  write_bytes(path, npy_bytes(values, std::move(shape)));
}

// What `clustergcn import` does.
inline Dataset import(const fs::path& source, const fs::path& target, ImportOptions options = {},
                      ImportReport* report = nullptr) {
  ImportReport own;
  StoreWriter writer(target, StagedDirectory::Existing::kReplace);
  choose_reader(source, options).read(source, options, writer, report != nullptr ? *report : own);
  writer.finish(source.filename().string());
  return open_dataset(target);
}

inline std::string import_error(const fs::path& source, ImportOptions options = {}) {
  const TemporaryFolder folder;
  const std::string message = message_of<Error>([&] { import(source, folder / "store", options); });
  EXPECT_TRUE(fs::is_empty(folder.path())) << "an import that failed left something behind";
  return message;
}

}  // namespace cgcn::test
