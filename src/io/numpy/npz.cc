#include "io/numpy/npz.h"

#include <zlib.h>

#include <cstring>

#include "common/error.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/scratch.h"
#include "io/file_kind.h"

namespace cgcn {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kDirectoryEndBytes = 22, kLocalHeaderBytes = 30, kDirectoryEntryBytes = 46;
constexpr uint16_t kZip64Extra = 1, kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr uint64_t kMostDeflateGains = 1032;  // one code of two bits can stand for 258 bytes, no more
constexpr size_t kUnpackedChunk = size_t{4} << 20;

[[noreturn]] void fail_broken(const std::string& what, const std::string& where) {
  throw Error("broken .npz: " + what, where, "copy or download the file again");
}

// Little-endian numbers at places of a span, each checked to lie in it.
class ZipFields {
 public:
  ZipFields(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  template <class T>
  T at(uint64_t offset) const {
    T value = 0;
    const auto bytes = slice(offset, sizeof value);
    for (size_t i = 0; i < sizeof value; ++i) value = static_cast<T>(value | static_cast<T>(bytes[i]) << (8 * i));
    return value;
  }
  std::span<const std::byte> slice(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) fail_broken("it is cut off", where_);
    return bytes_.subspan(offset, size);
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& where_;
};

// The end record is the last thing in the file but for a comment, whose length it gives.
uint64_t find_directory_end(const ZipFields& file, const std::string& where) {
  if (file.size() >= kDirectoryEndBytes) {
    const uint64_t last = file.size() - kDirectoryEndBytes;
    const uint64_t first = last > UINT16_MAX ? last - UINT16_MAX : 0;
    for (uint64_t at = last + 1; at-- > first;)
      if (file.at<uint32_t>(at) == kDirectoryEnd && file.at<uint16_t>(at + 20) == last - at) return at;
  }
  if (file.size() < 4 || file.at<uint32_t>(0) != kLocalHeader)
    throw Error("is not an .npz file", where, "write the arrays with numpy.savez");
  fail_broken("its end is missing", where);
}

void check_crc(const SharedBytes& bytes, uint32_t expected, const std::string& where) {
  uLong crc = ::crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.span.size(); at += kUnpackedChunk) {
    throw_if_interrupted();
    const SharedBytes chunk = bytes.slice(at, std::min(kUnpackedChunk, bytes.span.size() - at));
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(chunk.span.data()), static_cast<uInt>(chunk.span.size()));
    chunk.release();
  }
  if (crc != expected) fail_broken("its bytes do not match their checksum", where);
}

}  // namespace

NpzFile::NpzFile(const fs::path& path, const fs::path& scratch)
    : NpzFile(SharedBytes::map(path), path.string(), scratch) {}

NpzFile::NpzFile(SharedBytes bytes, std::string where, fs::path scratch)
    : bytes_(std::move(bytes)), where_(std::move(where)), scratch_(std::move(scratch)) {
  const ZipFields file(bytes_.span, where_);
  const uint64_t end = find_directory_end(file, where_);
  uint64_t count = file.at<uint16_t>(end + 10), size = file.at<uint32_t>(end + 12),
           offset = file.at<uint32_t>(end + 16);
  if (count == UINT16_MAX || size == UINT32_MAX || offset == UINT32_MAX) {
    if (end < 20 || file.at<uint32_t>(end - 20) != kLocator64) fail_broken("its zip64 record is missing", where_);
    const auto end64 = file.at<uint64_t>(end - 12);
    if (file.at<uint32_t>(end64) != kDirectoryEnd64) fail_broken("its zip64 record is missing", where_);
    file.slice(end64, 56);
    count = file.at<uint64_t>(end64 + 32);
    size = file.at<uint64_t>(end64 + 40);
    offset = file.at<uint64_t>(end64 + 48);
  }
  read_directory(offset, size, count);
}

void NpzFile::read_directory(uint64_t offset, uint64_t size, uint64_t count) {
  const ZipFields directory(ZipFields(bytes_.span, where_).slice(offset, size), where_);
  if (count > size / kDirectoryEntryBytes) fail_broken("it declares more members than it has room for", where_);
  for (uint64_t at = 0; count > 0; --count) {
    if (directory.at<uint32_t>(at) != kDirectoryEntry) fail_broken("its directory is damaged", where_);
    const auto name_bytes = directory.at<uint16_t>(at + 28), extra_bytes = directory.at<uint16_t>(at + 30);
    const auto name = directory.slice(at + kDirectoryEntryBytes, name_bytes);
    Member member{.offset = 0,
                  .compressed = directory.at<uint32_t>(at + 20),
                  .size = directory.at<uint32_t>(at + 24),
                  .crc = directory.at<uint32_t>(at + 16),
                  .deflated = directory.at<uint16_t>(at + 10) == kDeflated};
    uint64_t header_offset = directory.at<uint32_t>(at + 42);
    const ZipFields extra(directory.slice(at + kDirectoryEntryBytes + name_bytes, extra_bytes), where_);
    for (uint64_t e = 0; e + 4 <= extra_bytes; e += 4u + extra.at<uint16_t>(e + 2)) {
      if (extra.at<uint16_t>(e) != kZip64Extra) continue;
      uint64_t field = e + 4;  // only what did not fit in 32 bits is here, in this order
      for (uint64_t* value : {&member.size, &member.compressed, &header_offset})
        if (*value == UINT32_MAX) {
          *value = extra.at<uint64_t>(field);
          field += 8;
        }
    }
    std::string text(reinterpret_cast<const char*>(name.data()), name.size());
    const std::string where = fmt::format("{}: {}", where_, text);
    if ((directory.at<uint16_t>(at + 8) & kEncrypted) != 0) throw Error("is encrypted", where);
    if (!member.deflated && directory.at<uint16_t>(at + 10) != kStored)
      throw Error(fmt::format("is packed by method {}, which is not read", directory.at<uint16_t>(at + 10)), where,
                  "write it with numpy.savez or numpy.savez_compressed");
    add_member(std::move(text), header_offset, member);
    at += kDirectoryEntryBytes + uint64_t{name_bytes} + extra_bytes + directory.at<uint16_t>(at + 32);
  }
}

void NpzFile::add_member(std::string name, uint64_t header_offset, Member member) {
  const std::string where = fmt::format("{}: {}", where_, name);
  const ZipFields file(bytes_.span, where);
  if (file.at<uint32_t>(header_offset) != kLocalHeader) fail_broken("the member's header is damaged", where);
  member.offset =
      header_offset + kLocalHeaderBytes + file.at<uint16_t>(header_offset + 26) + file.at<uint16_t>(header_offset + 28);
  file.slice(member.offset, member.compressed);
  if (member.deflated ? member.size / kMostDeflateGains > member.compressed : member.size != member.compressed)
    fail_broken(fmt::format("declares {} bytes, but {} packed ones cannot hold them", member.size, member.compressed),
                where);
  if (name.ends_with(".npy")) name.resize(name.size() - 4);
  if (!members_.emplace(name, member).second) fail_broken("a member is listed twice", where);
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

SharedBytes NpzFile::member(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end())
    throw Error(fmt::format("has no array '{}', only {}", name, fmt::join(names(), ", ")), where_);
  const Member& member = found->second;
  const std::string where = fmt::format("{}: {}", where_, name);
  if (member.deflated) return inflate_member(member, where);
  SharedBytes stored = bytes_.slice(member.offset, member.size);
  check_crc(stored, member.crc, where);
  return stored;
}

Array NpzFile::array(const std::string& name) const {
  return Array::parse_npy(member(name), fmt::format("{}: {}", where_, name));
}

SharedBytes NpzFile::inflate_member(const Member& member, const std::string& where) const {
  if (member.size == 0) return SharedBytes::own("");
  const auto scratch = make_scratch(scratch_, member.size);
  const SharedBytes packed = bytes_.slice(member.offset, member.compressed);
  const SharedBytes whole{{scratch.get(), member.size}, scratch, true};
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, ::inflateEnd);
  Progress progress("unpacking " + where, member.size, "bytes");
  uint64_t read = 0, written = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    throw_if_interrupted();
    const size_t input = std::min<uint64_t>(kUnpackedChunk, packed.span.size() - read);
    const size_t room = std::min<uint64_t>(kUnpackedChunk, member.size - written);
    // zlib's interface is not const, but it does not write here.
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.span.data() + read));
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = reinterpret_cast<Bytef*>(scratch.get() + written);
    stream.avail_out = static_cast<uInt>(room);
    status = ::inflate(&stream, Z_NO_FLUSH);
    const size_t consumed = input - stream.avail_in, produced = room - stream.avail_out;
    if ((status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) ||
        (status != Z_STREAM_END && consumed + produced == 0))
      fail_broken("its packed bytes are damaged or cut off", where);
    packed.slice(read, consumed).release();
    whole.slice(written, produced).release();
    read += consumed;
    written += produced;
    progress.advance(produced);
  }
  if (written != member.size)
    fail_broken(fmt::format("declares {} bytes but unpacks to {}", member.size, written), where);
  check_crc(whole, member.crc, where);
  return whole;
}

bool is_npz(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return path.extension() == ".npz";
  const FileKind kind = kind_of_file(path);
  return kind == FileKind::kZip || (kind == FileKind::kText && path.extension() == ".npz");
}

Array open_array(const fs::path& path, const fs::path& scratch) {
  if (!is_npz(path)) return Array::open_npy(path);
  const NpzFile file(path, scratch);
  const std::vector<std::string> names = file.names();
  if (names.size() != 1) throw Error(fmt::format("holds {} arrays, expected one", names.size()), path.string());
  return file.array(names.front());
}

std::vector<fs::path> find_arrays(const fs::path& folder, std::initializer_list<const char*> names) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const char* name : names)
    for (const char* ending : {".npy", ".npz"})
      if (const fs::path path = folder / (std::string(name) + ending); fs::is_regular_file(path, error))
        found.push_back(path);
  return found;
}

fs::path find_array(const fs::path& folder, std::initializer_list<const char*> names) {
  const std::vector<fs::path> found = find_arrays(folder, names);
  return found.empty() ? fs::path() : found.front();
}

}  // namespace cgcn
