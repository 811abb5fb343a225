// Edge lists with features, labels and a split as text.
#include "fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cgcn::fuzz::import_files(data, size, "edges", {"edges.csv", "labels.csv", "features.csv", "train.txt", "test.txt"});
  return 0;
}
