// Planetoid's eight files, from bytes to a store.
#include "fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cgcn::fuzz::import_files(
      data, size, "planetoid",
      {"ind.x.graph", "ind.x.allx", "ind.x.tx", "ind.x.ally", "ind.x.ty", "ind.x.y", "ind.x.test.index"});
  return 0;
}
