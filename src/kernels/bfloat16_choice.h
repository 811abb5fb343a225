// Other products than those that this processor names, for benchmarks and tests.
#pragma once

#include "kernels/bfloat16_gemm.h"

namespace cgcn::kernels {

void use_bfloat16_functions(const BFloat16Functions* functions);  // from now on

// AVX512-BF16 on a machine whose hypervisor hides it: the instructions run though the processor does not name them. On
// one that has none the program dies of an illegal instruction. Null: not compiled for this architecture.
const BFloat16Functions* hidden_avx512_functions();

}  // namespace cgcn::kernels
