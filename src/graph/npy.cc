#include "graph/npy.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "common/error.h"

namespace cgcn {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The header is a Python dict literal with three known keys; this reads just that.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader read() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        read_descr(header);
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        fail(fmt::format("unknown key '{}'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) fail("a key is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    throw Error("broken .npy header: " + what, where_, "write the array again with numpy.save");
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' expected at byte {}", c, at_));
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(fmt::format("a quoted word expected at byte {}", at_));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    fail("True or False expected");
  }
  uint64_t number() {
    skip_space();
    uint64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status != std::errc()) fail("a size expected in the shape");
    at_ += static_cast<size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return value;
  }
  std::vector<uint64_t> tuple() {
    std::vector<uint64_t> shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == 8) fail("more than eight dimensions");
      shape.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void read_descr(NpyHeader& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      throw Error("holds a structured array", where_, "save a plain array of numbers instead");
    const std::string descr = quoted();
    if (descr.size() < 2 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
      fail(fmt::format("dtype '{}' is not understood", descr));
    header.big_endian = descr[0] == '>';
    header.kind = descr[1];
    if (descr.size() > 2) {
      const char* end = descr.data() + descr.size();
      const auto [rest, status] = std::from_chars(descr.data() + 2, end, header.item_bytes);
      if (status != std::errc() || rest != end || header.item_bytes == 0 || header.item_bytes > (1u << 20))
        fail(fmt::format("dtype '{}' is not understood", descr));
    } else if (header.kind == 'O') {
      header.item_bytes = 8;
    } else {
      fail(fmt::format("dtype '{}' is not understood", descr));
    }
    if (header.kind == 'U') header.item_bytes *= 4;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

// bytes = product(shape) · item, or nothing if that overflows.
std::optional<uint64_t> byte_count(const NpyHeader& header) {
  unsigned __int128 total = header.item_bytes;
  for (const uint64_t extent : header.shape) {
    total *= extent;
    if (total > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  }
  return static_cast<uint64_t>(total);
}

}  // namespace

uint64_t NpyHeader::num_elements() const {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  return count;
}

std::string NpyHeader::dtype() const {
  const char order = item_bytes == 1 || kind == 'O' || kind == 'S' ? '|' : big_endian ? '>' : '<';
  return fmt::format("{}{}{}", order, kind, kind == 'U' ? item_bytes / 4 : item_bytes);
}

NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < 10)
    throw Error("is not a .npy file", where, "write the array with numpy.save");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(text[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) throw Error(fmt::format(".npy version {} is not known", version), where);
  size_t length = byte(8) | byte(9) << 8, begin = 10;
  if (version > 1) {
    if (text.size() < 12) throw Error("is cut off within its .npy header", where);
    length |= byte(10) << 16 | byte(11) << 24;
    begin = 12;
  }
  if (length > text.size() - begin) throw Error("is cut off within its .npy header", where);
  NpyHeader header = HeaderReader(text.substr(begin, length), where).read();
  header.data_offset = begin + length;
  const std::optional<uint64_t> needed = byte_count(header);
  const uint64_t present = text.size() - header.data_offset;
  if (!needed) throw Error("declares more elements than any file can hold", where);
  if (header.kind != 'O' && *needed != present)
    throw Error(fmt::format("declares {} of shape ({}), {} bytes, but holds {}", header.dtype(),
                            fmt::join(header.shape, ", "), *needed, present),
                where, present < *needed ? "the file is cut off: copy or download it again" : "");
  return header;
}

std::string make_npy_header(const std::string& dtype, std::span<const uint64_t> shape) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", dtype,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  CGCN_CHECK(dict.size() + 11 <= kNpyHeaderBytes);
  dict.append(kNpyHeaderBytes - 11 - dict.size(), ' ').push_back('\n');
  std::string header(kMagic);
  header.append({'\x01', '\x00', static_cast<char>(dict.size() & 0xFF), static_cast<char>(dict.size() >> 8)});
  return header + dict;
}

}  // namespace cgcn
