// GraphSAGE's JSON files.
#include "fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cgcn::fuzz::import_files(data, size, "graphsage", {"x-G.json", "x-id_map.json", "x-class_map.json"});
  return 0;
}
