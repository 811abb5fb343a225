// JSON that comes from a file, which may be damaged or hostile.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace cgcn {

// Discarded (is_discarded) where it is not JSON, or where it is nested deeper than anything we write: to copy or print
// such a value takes a stack frame a level.
nlohmann::json parse_json(std::string_view text);

}  // namespace cgcn
