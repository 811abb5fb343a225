#include "kernels/instruction_sets.h"

#include <algorithm>

#include "hwy/highway.h"
#include "hwy/targets.h"
#include "kernels/blas.h"

namespace cgcn::kernels {
namespace {

// A core whose kernels run wherever these vector instructions do.
const char* oldest_core([[maybe_unused]] int64_t vector_targets) {
#if HWY_ARCH_X86
  return (vector_targets & HWY_AVX2) != 0 ? "Haswell" : "Nehalem";
#else
  return "ARMV8";
#endif
}

}  // namespace

InstructionSets own_instruction_sets() { return {hwy::SupportedTargets(), blas_core_name(), blas_version()}; }

InstructionSets common_instruction_sets(std::span<const InstructionSets> all) {
  InstructionSets common = all.front();
  for (const InstructionSets& sets : all) common.vector_targets &= sets.vector_targets;
  if (!std::all_of(all.begin(), all.end(), [&](const auto& sets) { return sets.blas_core == common.blas_core; }))
    common.blas_core = oldest_core(common.vector_targets);
  return common;
}

void use_instruction_sets(const InstructionSets& sets) {
  hwy::DisableTargets(~sets.vector_targets);
  use_blas_core(sets.blas_core);
}

}  // namespace cgcn::kernels
