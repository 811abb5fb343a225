// For benchmarks and tests on a machine whose hypervisor hides AVX512-BF16: the instructions run though the processor
// does not name them. On one that has none the program dies of an illegal instruction.
#pragma once

#include "kernels/bfloat16_gemm.h"

namespace cgcn::kernels {

const BFloat16Functions* hidden_avx512_functions();  // null: not compiled for this architecture
void use_hidden_avx512();                            // from now on, instead of what the processor names

}  // namespace cgcn::kernels
