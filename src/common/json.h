// JSON from files that may be damaged or hostile, and to files whatever users call their things.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cgcn {

// Discarded (is_discarded) if it is not JSON, or if it is nested deeper than anything we write: to copy or print
// such a value takes a stack frame a level.
nlohmann::json parse_json(std::string_view text);

// Names of classes, files and folders are users' bytes: those that are not UTF-8 are replaced rather than refused.
std::string to_text(const nlohmann::json& json, int indent = -1);

}  // namespace cgcn
