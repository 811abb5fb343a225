// A config.toml, as train --config reads it; what was read comes out the same when written and read again.
#include "fuzz_support.h"
#include "train/run_options.h"

namespace {

std::vector<std::string> read(const cgcn::fs::path& path, cgcn::RunOptions& options) {
  cgcn::OptionList list;
  options.list_options(list);
  read_toml(path, list);
  std::vector<std::string> values;
  for (const cgcn::Option& option : list.all()) values.push_back(option.text());
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cgcn::fs::path path = cgcn::fuzz::write_input("config.toml", data, size);
  cgcn::fuzz::attempt([&] {
    cgcn::RunOptions options, again;
    const std::vector<std::string> values = read(path, options);
    cgcn::OptionList list;
    options.list_options(list);
    const std::string text = list.to_toml();
    cgcn::fuzz::write_input("config.toml", reinterpret_cast<const uint8_t*>(text.data()), text.size());
    CGCN_CHECK(read(path, again) == values);
  });
  return 0;
}
