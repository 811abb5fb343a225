#include "train/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/hash.h"
#include "common/json.h"

namespace cgcn {
namespace {

constexpr size_t kAlignment = 64;               // of the first array, so that mapped arrays suit SIMD loads
constexpr uint64_t kHeaderLimit = 100'000'000;  // as other readers of the form have it

const std::map<std::string, size_t>& item_sizes() {
  static const std::map<std::string, size_t> sizes = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4}, {"I32", 4},
                                                      {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"U16", 2},
                                                      {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  return sizes;
}

uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The bytes that a shape takes, or nothing if they do not fit 64 bits.
bool shape_bytes(const std::vector<uint64_t>& shape, size_t item_bytes, uint64_t* bytes) {
  *bytes = item_bytes;
  for (const uint64_t extent : shape)
    if (__builtin_mul_overflow(*bytes, extent, bytes)) return false;
  return true;
}

std::string array_checksum(const std::string& type, const std::vector<uint64_t>& shape,
                           std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.add(type).add_value(shape.size());
  for (const uint64_t extent : shape) hasher.add_value(extent);
  return hex64(hasher.add(bytes.data(), bytes.size()).digest64());
}

constexpr const char* kMetadataItself = "__metadata__";  // no array can have this name

std::string metadata_checksum(const std::map<std::string, std::string>& metadata) {
  Hasher hasher;
  for (const auto& [key, text] : metadata)
    if (key != kChecksumsKey) hasher.add(key).add(text);
  return hex64(hasher.digest64());
}

}  // namespace

void SafetensorsWriter::add_bytes(std::string name, const char* type, std::vector<uint64_t> shape,
                                  std::span<const std::byte> bytes, size_t item_bytes) {
  uint64_t expected = 0;
  CGCN_CHECK(shape_bytes(shape, item_bytes, &expected) && expected == bytes.size(), "{}", name);
  entries_.push_back({std::move(name), type, std::move(shape), bytes});
}

void SafetensorsWriter::write(const fs::path& path) const {
  // Wider items first: every array then begins at a multiple of its item size.
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return item_sizes().at(a->type) > item_sizes().at(b->type); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  nlohmann::ordered_json checksums = {{kMetadataItself, metadata_checksum(metadata_)}};
  for (const Entry* entry : order) checksums[entry->name] = array_checksum(entry->type, entry->shape, entry->bytes);
  header[kMetadataItself] = metadata_;
  header[kMetadataItself][kChecksumsKey] = to_text(checksums);
  uint64_t offset = 0;
  for (const Entry* entry : order) {
    header[entry->name] = {
        {"dtype", entry->type}, {"shape", entry->shape}, {"data_offsets", {offset, offset + entry->bytes.size()}}};
    offset += entry->bytes.size();
  }
  std::string text = to_text(header);
  text.resize(padded(text.size() + 8) - 8, ' ');
  OutputFile file = OutputFile::staged(path);
  const uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text);
  for (const Entry* entry : order) file.write(entry->bytes.data(), entry->bytes.size());
  file.commit();
}

SafetensorsFile::SafetensorsFile(const fs::path& path) : file_(std::make_shared<MappedFile>(path)) {
  const auto fail = [&](const std::string& what) -> void {
    throw Error("is not a whole safetensors file: " + what, path.string());
  };
  const std::span<const std::byte> bytes = file_->bytes();
  uint64_t length = 0;
  if (bytes.size() < sizeof length) fail("it is shorter than its header");
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kHeaderLimit || length > bytes.size() - sizeof length) fail("its header does not fit in it");
  const std::span<const std::byte> data = bytes.subspan(sizeof length + length);
  const std::string_view text = file_->text().substr(sizeof length, length);
  if (text.find('\0') != std::string_view::npos) fail("its header has a zero byte");
  const nlohmann::json header = parse_json(text);
  if (!header.is_object()) fail("its header is not a JSON object");

  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [first, second] : header.items()) {
    const auto& name = first;  // clang does not capture a binding
    const auto& value = second;
    if (name == kMetadataItself) {
      if (!value.is_object()) fail("__metadata__ is not an object");
      for (const auto& [key, entry] : value.items()) {
        if (!entry.is_string()) fail(fmt::format("metadata '{}' is not text", key));
        metadata_[key] = entry.get<std::string>();
      }
      continue;
    }
    const auto unsigned_list = [&](const char* key) {
      if (!value.is_object() || !value.contains(key) || !value[key].is_array())
        fail(fmt::format("'{}' has no {}", name, key));
      std::vector<uint64_t> list;
      for (const auto& item : value[key]) {
        if (!item.is_number_unsigned()) fail(fmt::format("{} of '{}' is not a list of whole numbers", key, name));
        list.push_back(item.get<uint64_t>());
      }
      return list;
    };
    Entry entry;
    entry.shape = unsigned_list("shape");
    const std::vector<uint64_t> range = unsigned_list("data_offsets");
    if (!value.contains("dtype") || !value["dtype"].is_string()) fail(fmt::format("'{}' has no dtype", name));
    entry.type = value["dtype"].get<std::string>();
    const auto item = item_sizes().find(entry.type);
    if (item == item_sizes().end()) fail(fmt::format("'{}' is of the unknown type {}", name, entry.type));
    uint64_t expected = 0;
    if (range.size() != 2 || range[0] > range[1] || range[1] > data.size() ||
        !shape_bytes(entry.shape, item->second, &expected) || expected != range[1] - range[0])
      fail(fmt::format("the bytes of '{}' do not match its shape", name));
    if ((sizeof length + length + range[0]) % item->second != 0) fail(fmt::format("'{}' is not aligned", name));
    entry.bytes = data.subspan(range[0], expected);
    ranges.emplace_back(range[0], range[1]);
    entries_.emplace(name, std::move(entry));
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;
  for (const auto& [first, last] : ranges) {
    if (first != end) fail("its arrays overlap or leave holes");
    end = last;
  }
  if (end != data.size()) fail("it has bytes that belong to no array");
  if (has_checksums()) compare_checksums();
}

void SafetensorsFile::compare_checksums() const {
  const auto damaged = [&](const std::string& what) {
    return Error(what + " does not match its checksum: the file is damaged", path().string(),
                 "restore it from a copy, or train again with another --run");
  };
  const nlohmann::json checksums = parse_json(metadata(kChecksumsKey));
  if (!checksums.is_object() || checksums.size() != entries_.size() + 1) throw damaged("its list of arrays");
  const auto matches = [&](const std::string& name, const std::string& found) {
    return checksums.contains(name) && checksums[name] == found;
  };
  if (!matches(kMetadataItself, metadata_checksum(metadata_))) throw damaged("its description");
  for (const auto& [name, entry] : entries_)
    if (!matches(name, array_checksum(entry.type, entry.shape, entry.bytes))) throw damaged(fmt::format("'{}'", name));
}

const std::string& SafetensorsFile::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) throw Error(fmt::format("has no '{}' in its metadata", key), path().string());
  return found->second;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw Error(fmt::format("has no array '{}'", name), path().string());
  return found->second;
}

std::span<const std::byte> SafetensorsFile::typed_bytes(const std::string& name, const char* type) const {
  const Entry& found = entry(name);
  if (found.type != type)
    throw Error(fmt::format("'{}' is of type {}, not {}", name, found.type, type), path().string());
  return found.bytes;
}

}  // namespace cgcn
