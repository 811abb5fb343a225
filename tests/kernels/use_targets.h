// Which instruction sets Highway's kernels may use, in tests.
#pragma once

#include <cstdint>

#include "hwy/highway.h"

namespace cgcn::kernels {

inline void use_targets(int64_t targets) {  // 0: whatever the CPU has
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Those without products of our own: OpenBLAS multiplies. Better targets have lower bits.
inline int64_t targets_of_openblas() { return hwy::SupportedTargets() & ~(int64_t{HWY_AVX2} * 2 - 1); }

}  // namespace cgcn::kernels
