// Which vector instructions and which kernels of OpenBLAS this process computes with. Sums are rounded differently with
// others: processes that are to get the same bits agree on what all of their machines have.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace cgcn::kernels {

struct InstructionSets {
  int64_t vector_targets = 0;  // of Highway, as it numbers them
  std::string blas_core;       // "SkylakeX", "Haswell" …
  std::string blas_version;    // "0.3.21"

  bool operator==(const InstructionSets&) const = default;
};

InstructionSets own_instruction_sets();

// What all of these have. They are of the same version of OpenBLAS.
InstructionSets common_instruction_sets(std::span<const InstructionSets> all);

// From here on. Before the first computation; Error if OpenBLAS cannot be told.
void use_instruction_sets(const InstructionSets& sets);

}  // namespace cgcn::kernels
