#include "io/file_kind.h"

#include <algorithm>
#include <string_view>

#include "common/error.h"
#include "common/input_file.h"

namespace cgcn {
namespace {

constexpr size_t kLongestMark = 16;

struct ForeignFormat {
  std::string_view mark;  // the first bytes
  const char* name;
  const char* python;  // what turns a file of this name into CSV or .npy
};

constexpr const char* kFeather = "pandas.read_feather('{0}').to_csv('{1}.csv')";
constexpr ForeignFormat kForeign[] = {
    {"PAR1", "Parquet", "pandas.read_parquet('{0}').to_csv('{1}.csv')"},
    {"ARROW1", "Feather (Arrow)", kFeather},
    {"FEA1", "Feather", kFeather},
    {"\x89HDF\r\n\x1a\n", "HDF5", "numpy.save('{1}.npy', h5py.File('{0}')[NAME][:])"},
    {"SQLite format 3", "SQLite", "pandas.read_sql('select …', sqlite3.connect('{0}')).to_csv('{1}.csv')"},
};

// A node may be called PAR1; only binary files have control characters.
bool is_binary(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r' && c != '\n'; });
}

}  // namespace

FileKind kind_of_bytes(std::span<const std::byte> first, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), std::min(first.size(), kLongestMark));
  if (text.starts_with("\x93NUMPY")) return FileKind::kNpy;
  if (text.starts_with("PK\x03\x04")) return FileKind::kZip;
  for (const ForeignFormat& format : kForeign)
    if (text.starts_with(format.mark) && is_binary(text)) {
      const fs::path path(where);
      throw Error(fmt::format("is a {} file, which this program does not read", format.name), where,
                  fmt::format(fmt::runtime("convert it in Python: " + std::string(format.python)),
                              path.filename().string(), path.stem().string()));
    }
  return FileKind::kText;
}

FileKind kind_of_file(const fs::path& path) {
  std::error_code error;
  if (const fs::file_status status = fs::status(path, error); fs::exists(status) && !fs::is_regular_file(status))
    refuse_special_file(path);
  const InputFile file(path);
  std::byte first[kLongestMark];
  const size_t size = std::min<uint64_t>(file.size(), sizeof first);
  file.read(0, first, size);
  return kind_of_bytes({first, size}, path.string());
}

bool holds_arrays(const fs::path& path) {
  if (path.empty()) return false;
  if (path.extension() == ".npy" || path.extension() == ".npz") return true;
  std::error_code error;
  return fs::exists(path, error) && kind_of_file(path) != FileKind::kText;
}

}  // namespace cgcn
