// Texts as Python's pickles write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cgcn {

// A quoted string: \n, \t, \r, \\, \', \" and \xhh are what repr() writes. Nothing if it is malformed.
std::optional<std::string> decode_python_string(std::string_view line);
// Raw-unicode-escape, Latin-1 with \uhhhh, to UTF-8. Nothing if it is malformed.
std::optional<std::string> decode_raw_unicode(std::string_view line);
// UTF-8 text whose characters stand for bytes. Nothing if one is beyond Latin-1.
std::optional<std::string> latin1_bytes(std::string_view utf8);

}  // namespace cgcn
