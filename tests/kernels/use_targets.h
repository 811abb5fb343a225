// Which instruction sets Highway's kernels may use, in tests.
#pragma once

#include <cstdint>

#include "hwy/highway.h"

namespace cgcn::kernels {

inline void use_targets(int64_t targets) {  // 0: whatever the CPU has
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace cgcn::kernels
