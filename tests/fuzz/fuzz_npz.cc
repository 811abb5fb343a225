// An .npz on its own: every member, unpacked and read whole; then as the gnn-benchmark format and as SciPy's matrix.
#include "fuzz_support.h"
#include "io/numpy/npz.h"

namespace {

void read_members(const uint8_t* data, size_t size) {
  const cgcn::NpzFile file(cgcn::SharedBytes::own({reinterpret_cast<const char*>(data), size}), "fuzz",
                           cgcn::fuzz::scratch_folder());
  for (const std::string& name : file.names()) {
    cgcn::fuzz::attempt([&] {
      const cgcn::Array array = file.array(name);
      if (array.is_number() && array.shape().size() <= 2) array.read_all<double>();
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_members(data, size);
  } catch (const cgcn::Error&) {
    return 0;
  }
  cgcn::fuzz::import_files(data, size, "gnn-benchmark", {"graph.npz"});
  cgcn::fuzz::import_files(data, size, "plain", {"adj.npz"});
  return 0;
}
