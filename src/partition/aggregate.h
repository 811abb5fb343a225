// The rows of N(A)·X, computed into a store that is being written.
#pragma once

#include "graph/normalisation.h"
#include "graph/store.h"
#include "graph/store_writer.h"
#include "kernels/bfloat16.h"

namespace cgcn {

struct ProductSource {
  const Store& files;
  Dataset data;  // of the files, perhaps with other features
  const Normalisation& normalisation;
  uint64_t memory;  // for buffers and mapped pages; the bits do not depend on it
  kernels::Precision precision = kernels::Precision::kFloat32;
};

void write_product_rows(const ProductSource& source, StoreWriter& writer);
// X itself, which is float32, in bfloat16.
void write_rounded_rows(const FeatureMatrix& x, StoreWriter& writer);

}  // namespace cgcn
