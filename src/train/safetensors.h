// Named arrays in one file, in the safetensors form that PyTorch, NumPy and others load: eight bytes of header length
// (little-endian), a JSON header with dtype, shape and byte range of every array, then the bytes, without holes.
//
// Written under a temporary name and renamed, so that a file under its name is always complete. Its metadata have a
// checksum of every array and one of the other metadata; reading compares them, and trusts no byte. Files of other
// programs have none.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/file.h"

namespace cgcn {

template <class T>
struct TensorTypeOf;
template <>
struct TensorTypeOf<float> {
  static constexpr const char* name = "F32";
};
template <>
struct TensorTypeOf<double> {
  static constexpr const char* name = "F64";
};
template <>
struct TensorTypeOf<uint32_t> {
  static constexpr const char* name = "U32";
};
template <>
struct TensorTypeOf<uint64_t> {
  static constexpr const char* name = "U64";
};
template <>
struct TensorTypeOf<uint8_t> {
  static constexpr const char* name = "U8";
};

inline constexpr const char* kChecksumsKey = "checksums";  // in the metadata: a JSON object, name → hexadecimal XXH3

class SafetensorsWriter {
 public:
  // The values are read when write() is called: they must live until then.
  template <class T>
  void add(std::string name, std::vector<uint64_t> shape, std::span<const T> values) {
    add_bytes(std::move(name), TensorTypeOf<T>::name, std::move(shape), std::as_bytes(values), sizeof(T));
  }
  void set_metadata(std::map<std::string, std::string> metadata) { metadata_ = std::move(metadata); }
  void write(const fs::path& path) const;

 private:
  struct Entry {
    std::string name, type;
    std::vector<uint64_t> shape;
    std::span<const std::byte> bytes;
  };
  void add_bytes(std::string name, const char* type, std::vector<uint64_t> shape, std::span<const std::byte> bytes,
                 size_t item_bytes);
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

class SafetensorsFile {
 public:
  // Throws Error that names the file if it is not exactly what the form asks.
  explicit SafetensorsFile(const fs::path& path);

  const fs::path& path() const { return file_->path(); }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& metadata(const std::string& key) const;  // Error if it is not there
  bool has_checksums() const { return metadata_.contains(kChecksumsKey); }
  bool contains(const std::string& name) const { return entries_.contains(name); }
  std::vector<std::string> names() const;
  const std::vector<uint64_t>& shape(const std::string& name) const { return entry(name).shape; }
  // The array where it lies in the mapped file. Error if it is not there or of another type.
  template <class T>
  std::span<const T> values(const std::string& name) const {
    const std::span<const std::byte> bytes = typed_bytes(name, TensorTypeOf<T>::name);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // Copies into `out`, whose size must be the array's.
  template <class T>
  void copy(const std::string& name, std::span<T> out) const {
    const std::span<const T> from = values<T>(name);
    if (from.size() != out.size())
      throw Error(fmt::format("'{}' has {} values, expected {}", name, from.size(), out.size()), path().string());
    std::copy(from.begin(), from.end(), out.begin());
  }

 private:
  struct Entry {
    std::string type;
    std::vector<uint64_t> shape;
    std::span<const std::byte> bytes;
  };
  const Entry& entry(const std::string& name) const;
  void compare_checksums() const;
  std::span<const std::byte> typed_bytes(const std::string& name, const char* type) const;

  std::shared_ptr<MappedFile> file_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, Entry> entries_;
};

}  // namespace cgcn
