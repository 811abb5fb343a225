// Lines, fields and numbers: plain or gzip text cut into fields, which must come out the same when written again.
#include "fuzz_support.h"
#include "io/text/fields.h"

namespace cgcn::fuzz {
namespace {

std::string quote(std::string_view field) {
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void read(const fs::path& path) {
  LineReader lines(path);
  std::string_view line;
  if (!lines.next_content(line)) return;
  FieldSplitter splitter(line);
  do {
    const std::vector<std::string_view>& split = splitter.split(line, lines);
    const std::vector<std::string> fields(split.begin(), split.end());
    std::string again;
    for (const std::string& field : fields) {
      parse_integer(field);
      parse_number(field);
      again += (again.empty() ? "" : ",") + quote(field);
    }
    FieldSplitter comma(",");
    const auto& second = comma.split(again, lines);
    CGCN_CHECK(std::vector<std::string>(second.begin(), second.end()) == fields);
  } while (lines.next_content(line));
}

}  // namespace
}  // namespace cgcn::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cgcn::fs::path path = cgcn::fuzz::write_input("text", data, size);
  cgcn::fuzz::attempt([&] { cgcn::fuzz::read(path); });
  return 0;
}
