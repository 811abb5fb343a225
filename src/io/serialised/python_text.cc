#include "io/serialised/python_text.h"

#include <cstdint>

#include "io/numpy/array.h"

namespace cgcn {
namespace {

// The number that hexadecimal digits stand for, or nothing.
std::optional<uint32_t> parse_hex(std::string_view digits) {
  uint32_t value = 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  return value;
}

}  // namespace

std::optional<std::string> decode_python_string(std::string_view line) {
  if (line.size() < 2 || line.front() != line.back() || (line.front() != '\'' && line.front() != '"'))
    return std::nullopt;
  line = line.substr(1, line.size() - 2);
  constexpr std::string_view kLetters = "ntr\\'\"", kMeanings = "\n\t\r\\'\"";
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      text += line[i];
      continue;
    }
    if (++i == line.size()) return std::nullopt;
    if (line[i] == 'x') {
      if (line.size() - i < 3) return std::nullopt;
      const auto code = parse_hex(line.substr(i + 1, 2));
      if (!code) return std::nullopt;
      text += static_cast<char>(*code);
      i += 2;
    } else {
      const size_t letter = kLetters.find(line[i]);
      if (letter == std::string_view::npos) return std::nullopt;
      text += kMeanings[letter];
    }
  }
  return text;
}

std::optional<std::string> decode_raw_unicode(std::string_view line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    uint32_t code = static_cast<unsigned char>(line[i]);
    if (code == '\\' && i + 1 < line.size() && line[i + 1] == 'u') {
      if (line.size() - i < 6) return std::nullopt;
      const auto escaped = parse_hex(line.substr(i + 2, 4));
      if (!escaped) return std::nullopt;
      code = *escaped;
      i += 5;
    }
    append_utf8(text, code);
  }
  return text;
}

std::optional<std::string> latin1_bytes(std::string_view utf8) {
  std::string bytes;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    if (lead < 0x80) {
      bytes += utf8[i];
    } else {
      if ((lead != 0xC2 && lead != 0xC3) || ++i == utf8.size()) return std::nullopt;
      bytes += static_cast<char>(lead << 6 | (static_cast<unsigned char>(utf8[i]) & 0x3F));
    }
  }
  return bytes;
}

}  // namespace cgcn
