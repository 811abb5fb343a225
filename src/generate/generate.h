// Synthetic graphs, straight into a store.
#pragma once

#include "generate/shape.h"
#include "graph/store.h"

namespace cgcn {

// The same options give the same store for any number of threads and in any memory. Features are streamed: they are
// never all in memory. memory: for the whole process; edges that do not fit wait in files next to the store. Error with
// the least that works if it is too little.
void generate_store(const fs::path& target, const GenerateOptions& options, StagedDirectory::Existing existing,
                    uint64_t memory = UINT64_MAX);

}  // namespace cgcn
