// A checkpoint: the safetensors form, every array in it, and the model that it may hold.
#include "fuzz_support.h"
#include "train/checkpoint.h"
#include "train/safetensors.h"

namespace {

template <class T>
void read_values(const cgcn::SafetensorsFile& file, const std::string& name) {
  cgcn::fuzz::attempt([&] {
    for (const T value : file.values<T>(name)) cgcn::fuzz::touch(value);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cgcn::fs::path path = cgcn::fuzz::write_input("model.safetensors", data, size);
  cgcn::fuzz::attempt([&] {
    const cgcn::SafetensorsFile file(path);
    for (const std::string& name : file.names()) {
      read_values<float>(file, name);
      read_values<double>(file, name);
      read_values<uint8_t>(file, name);
      read_values<uint32_t>(file, name);
      read_values<uint64_t>(file, name);
    }
  });
  cgcn::fuzz::attempt([&] { cgcn::load_model(path); });
  return 0;
}
