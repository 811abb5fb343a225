// Synthetic graphs, straight into a store.
#pragma once

#include "generate/shape.h"
#include "graph/store.h"

namespace cgcn {

// The same options give the same store for any number of threads. Features are streamed: they are never all in memory.
void generate_store(const fs::path& target, const GenerateOptions& options, StagedDirectory::Existing existing);

}  // namespace cgcn
