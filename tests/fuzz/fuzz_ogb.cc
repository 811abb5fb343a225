// OGB's raw files.
#include "fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cgcn::fuzz::import_files(data, size, "ogb",
                           {"raw/edge.csv", "raw/num-node-list.csv", "raw/node-feat.csv", "raw/node-label.csv",
                            "split/s/train.csv", "split/s/valid.csv", "split/s/test.csv", "raw/num-edge-list.csv"});
  return 0;
}
