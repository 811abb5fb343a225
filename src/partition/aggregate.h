// The rows of N(A)·X, computed into a store that is being written.
#pragma once

#include "graph/normalisation.h"
#include "graph/store.h"
#include "graph/store_writer.h"

namespace cgcn {

// data: of the files, perhaps with other features. memory: for buffers and mapped pages; the bits do not depend on it.
void write_product_rows(const Store& files, const Dataset& data, const Normalisation& normalisation, uint64_t memory,
                        StoreWriter& writer);

}  // namespace cgcn
