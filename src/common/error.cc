#include "common/error.h"

#include <algorithm>
#include <string_view>

namespace cgcn {
namespace {

constexpr size_t kLongestText = 500;  // ours are shorter: what is longer shows content of a file

std::string join(const std::string& what, const std::string& where, const std::string& hint) {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!hint.empty()) text += "\nhint: " + hint;
  return text;
}

}  // namespace

std::string quoted(std::string_view text, size_t most) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool starts_character = (byte & 0xC0) != 0x80;
    if (i >= most && starts_character) return fmt::format("{}… ({} bytes)", shown, text.size());
    const bool second_control =  // U+0080 … U+009F, which terminals take for escape codes
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool stray = !starts_character && (i == 0 || static_cast<unsigned char>(text[i - 1]) < 0x80);
    if ((byte >= 0x20 && byte != 0x7F && !second_control && !stray) || byte == '\t')
      shown += text[i];
    else if (byte == '\n' || byte == '\r')
      shown += byte == '\n' ? "\\n" : "\\r";
    else
      shown += fmt::format("\\x{:02x}", byte);
    if (second_control) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
  }
  return shown;
}

namespace {

// Content stands between quotes: between the first and the last of them. If there are none, all of a text that is
// longer than any of ours is taken for content.
std::string shorten(const std::string& text) {
  size_t begin = text.find('\''), end = text.rfind('\'');
  if (begin == end) {
    begin = 0;
    end = text.size() > kLongestText ? text.size() : 0;
  }
  if (begin + kMostQuoted >= end) return quoted(text, text.size());
  const std::string_view all = text, content = all.substr(begin, end - begin);
  return quoted(all.substr(0, begin), begin) +
         quoted(content.substr(0, content.size() - kMostQuoted / 4), kMostQuoted / 4 * 3) +
         quoted(all.substr(end - kMostQuoted / 4), text.size());
}

// Ours, with names of the user's in it: its lines stay lines.
std::string quoted_lines(std::string_view hint) {
  std::string shown;
  for (size_t begin = 0; begin <= hint.size();) {
    const size_t end = std::min(hint.find('\n', begin), hint.size());
    if (begin > 0) shown += '\n';
    shown += quoted(hint.substr(begin, end - begin), kLongestText);
    begin = end + 1;
  }
  return shown;
}

}  // namespace

// What every message goes through, however long and odd the file is that it shows a part of.
Error::Error(std::string what, std::string where, std::string hint)
    : std::runtime_error(join(shorten(what), quoted(where, where.size()), quoted_lines(hint))),
      problem_(std::move(what)),
      where_(std::move(where)),
      hint_(std::move(hint)) {}

void fail_check(const char* condition, const char* file, int line, const std::string& detail) {
  throw std::logic_error(
      fmt::format("internal check failed: {} ({}:{}){}{}", condition, file, line, detail.empty() ? "" : ": ", detail));
}

}  // namespace cgcn
