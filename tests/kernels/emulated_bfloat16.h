// The products of kernels/bfloat16_x86-inl.h, compiled for instructions that functions stand in for. They run, slowly,
// on any processor: no machine that runs the tests needs to have AVX512-BF16 or AMX.
#pragma once

#include "kernels/bfloat16_gemm.h"

namespace cgcn::kernels {

const BFloat16Functions& emulated_avx512_functions();
const BFloat16Functions& emulated_amx_functions();

}  // namespace cgcn::kernels
