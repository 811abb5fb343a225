// Folders of .npy arrays: edge index, features, labels, split.
#include "fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cgcn::fuzz::import_files(data, size, "plain", {"edge_index.npy", "features.npy", "labels.npy", "split.npy"});
  return 0;
}
