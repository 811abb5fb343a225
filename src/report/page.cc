#include "report/page.h"

#include "common/error.h"
#include "common/json.h"
#include "report/embedded.h"

namespace cgcn {
namespace {

// Puts `text` where `mark` stands. What was put in before is not searched again.
void put(std::string& page, size_t& from, std::string_view mark, std::string_view text) {
  const size_t at = page.find(mark, from);
  CGCN_CHECK(at != std::string::npos, "page.html has no {}", mark);
  page.replace(at, mark.size(), text);
  from = at + text.size();
}

}  // namespace

std::string to_script_text(const nlohmann::json& data) {
  std::string escaped;
  for (const char c : to_text(data)) {
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  }
  return escaped;
}

std::string make_page(const nlohmann::json& data, bool live) {
  nlohmann::json shown = data;
  shown["live"] = live;
  std::string page(embedded::kPage);
  size_t from = 0;
  put(page, from, "/*STYLE*/", embedded::kStyle);
  put(page, from, "/*DATA*/", to_script_text(shown));
  put(page, from, "/*LIBRARY*/", embedded::kLibrary);
  put(page, from, "/*TOOLS*/", embedded::kTools);
  put(page, from, "/*CHARTS*/", embedded::kCharts);
  put(page, from, "/*CLASSES*/", embedded::kClasses);
  put(page, from, "/*SCRIPT*/", embedded::kScript);
  return page;
}

}  // namespace cgcn
