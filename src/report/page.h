// The report as one HTML file that needs nothing else: style, charting library, data and script are all inside.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cgcn {

// data: what read_runs gives. live: the page polls data.json, next to it, while it is open.
std::string make_page(const nlohmann::json& data, bool live);

// JSON that can stand in a script element: no `<`, so that no tag, comment or end of the element can be read in it.
std::string to_script_text(const nlohmann::json& data);

}  // namespace cgcn
