#include "common/json.h"

namespace cgcn {

nlohmann::json parse_json(std::string_view text) {
  using nlohmann::json;
  constexpr int kMostDepth = 64;
  bool too_deep = false;
  const auto within = [&](int depth, json::parse_event_t, const json&) { return !(too_deep |= depth > kMostDepth); };
  json value = json::parse(text, within, /*allow_exceptions=*/false);
  return too_deep ? json(json::value_t::discarded) : value;
}

std::string to_text(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cgcn
