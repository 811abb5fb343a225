#include "io/numpy/array.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <limits>

#include "common/error.h"
#include "graph/features.h"
#include "io/file_kind.h"

namespace cgcn {
namespace {

struct HalfBits {
  Half bits;
};

template <class Value>
Value swap_bytes(Value value) {
  std::byte bytes[sizeof(Value)];
  std::memcpy(bytes, &value, sizeof value);
  std::reverse(std::begin(bytes), std::end(bytes));
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<From, HalfBits>)
    return static_cast<To>(half_to_float(value.bits));
  else if constexpr (std::is_same_v<From, uint64_t> && std::is_same_v<To, int64_t>)
    return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  else
    return static_cast<To>(value);
}

template <class From, class To>
void convert_all(const std::byte* from, uint64_t stride, size_t count, bool swap, To* out) {
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * stride * sizeof(From), sizeof value);
    out[i] = convert<To>(swap ? swap_bytes(value) : value);
  }
}

template <class To>
void convert_as(char kind, uint32_t item_bytes, const std::byte* from, uint64_t stride, size_t count, bool swap,
                To* out) {
  const auto as = [&]<class From>(From) { convert_all<From>(from, stride, count, swap, out); };
  if (kind == 'f') {
    if constexpr (!std::is_same_v<To, int64_t>) {
      if (item_bytes == 2) return as(HalfBits{});
      if (item_bytes == 4) return as(float{});
      if (item_bytes == 8) return as(double{});
    }
  } else if (kind == 'i') {
    if (item_bytes == 1) return as(int8_t{});
    if (item_bytes == 2) return as(int16_t{});
    if (item_bytes == 4) return as(int32_t{});
    if (item_bytes == 8) return as(int64_t{});
  } else {
    if (item_bytes == 1) return as(uint8_t{});
    if (item_bytes == 2) return as(uint16_t{});
    if (item_bytes == 4) return as(uint32_t{});
    if (item_bytes == 8) return as(uint64_t{});
  }
  CGCN_CHECK(false, "read an array of kind {}{} as numbers", kind, item_bytes);
}

}  // namespace

void append_utf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
             static_cast<char>(0x80 | (code & 0x3F))};
  } else {
    text += {static_cast<char>(0xF0 | (code >> 18 & 7)), static_cast<char>(0x80 | (code >> 12 & 0x3F)),
             static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
  }
}

SharedBytes SharedBytes::map(const fs::path& path) {
  auto file = std::make_shared<MappedFile>(path);
  const std::span<const std::byte> bytes = file->bytes();
  return {bytes, std::move(file), true};
}

SharedBytes SharedBytes::own(std::string bytes) {
  auto kept = std::make_shared<std::string>(std::move(bytes));
  const auto view = std::as_bytes(std::span(*kept));
  return {view, std::move(kept), false};
}

void SharedBytes::release() const {
  if (!mapped || span.empty()) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(span.data());
  const uintptr_t begin = (address + page - 1) / page * page, end = (address + span.size()) / page * page;
  // Pages of a mapped file are clean or shared: dropping them from this process loses nothing.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Array Array::parse_npy(SharedBytes bytes, std::string where) {
  kind_of_bytes(bytes.span, where);  // refuses other programs' formats by their names
  NpyHeader header = parse_npy_header(bytes.span, where);
  const size_t offset = header.data_offset;
  return {std::move(header), bytes.slice(offset, bytes.span.size() - offset), std::move(where)};
}

Array Array::open_npy(const fs::path& path) { return parse_npy(SharedBytes::map(path), path.string()); }

Array::Array(NpyHeader header, SharedBytes elements, std::string where)
    : header_(std::move(header)), elements_(std::move(elements)), where_(std::move(where)) {
  if (header_.kind == 'O')
    throw Error("holds Python objects, which are not read", where_, "save a plain array of numbers instead");
  CGCN_CHECK(header_.num_elements() * header_.item_bytes == elements_.span.size());
}

bool Array::is_integer() const {
  const uint32_t width = header_.item_bytes;
  if (header_.kind == 'b') return width == 1;
  return (header_.kind == 'i' || header_.kind == 'u') && width <= 8 && std::has_single_bit(width);
}

bool Array::is_number() const {
  const uint32_t width = header_.item_bytes;
  return is_integer() || (header_.kind == 'f' && (width == 2 || width == 4 || width == 8));
}

void Array::require_integers(std::string_view what) const {
  if (!is_integer()) throw Error(fmt::format("holds {}, but {} must be integers", dtype(), what), where_);
}

void Array::require_numbers(std::string_view what) const {
  if (!is_number())
    throw Error(fmt::format("holds {}, but {} must be integers or floats of 16, 32 or 64 bits", dtype(), what), where_);
}

void Array::require_dimensions(size_t count, std::string_view what) const {
  if (shape().size() != count)
    throw Error(fmt::format("has shape ({}), but {} must have {} dimension{}", fmt::join(shape(), ", "), what, count,
                            count == 1 ? "" : "s"),
                where_);
}

template <class T>
void Array::read(uint64_t first, uint64_t stride, size_t count, T* out) const {
  if (count == 0) return;
  CGCN_CHECK(first < size() && (count - 1) <= (size() - 1 - first) / std::max<uint64_t>(stride, 1));
  const bool swap = header_.big_endian == (std::endian::native == std::endian::little) && header_.item_bytes > 1;
  convert_as(header_.kind, header_.item_bytes, elements_.span.data() + first * header_.item_bytes, stride, count, swap,
             out);
}

template <class T>
void Array::read_rows(uint64_t first, size_t count, T* out) const {
  const uint64_t width = columns();
  CGCN_CHECK(shape().size() <= 2 && first + count <= rows());
  if (!fortran_order()) return read(first * width, 1, count * width, out);
  for (size_t i = 0; i < count; ++i) read(first + i, rows(), width, out + i * width);
}

template void Array::read(uint64_t, uint64_t, size_t, int64_t*) const;
template void Array::read(uint64_t, uint64_t, size_t, float*) const;
template void Array::read(uint64_t, uint64_t, size_t, double*) const;
template void Array::read_rows(uint64_t, size_t, int64_t*) const;
template void Array::read_rows(uint64_t, size_t, float*) const;
template void Array::read_rows(uint64_t, size_t, double*) const;

std::vector<std::string> Array::read_texts() const {
  if (header_.kind != 'U' && header_.kind != 'S')
    throw Error(fmt::format("holds {}, but text is needed", dtype()), where_);
  std::vector<std::string> texts(size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::byte* item = elements_.span.data() + i * header_.item_bytes;
    if (header_.kind == 'S') {
      const auto* text = reinterpret_cast<const char*>(item);
      texts[i].assign(text, ::strnlen(text, header_.item_bytes));
      continue;
    }
    for (uint32_t at = 0; at < header_.item_bytes; at += 4) {
      uint32_t code;
      std::memcpy(&code, item + at, sizeof code);
      if (header_.big_endian == (std::endian::native == std::endian::little)) code = swap_bytes(code);
      if (code == 0) break;
      append_utf8(texts[i], code);
    }
  }
  return texts;
}

}  // namespace cgcn
