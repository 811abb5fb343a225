// OpenBLAS as this program wants it: the OpenMP build, with the kernels that this CPU deserves.
//
// OpenBLAS 0.3.21 does not know CPUs that are younger than itself and gives them its oldest kernels (a fifth of the
// speed). Where that has happened it is told the newest core that it does know and that this CPU can run.
#pragma once

#include <string>

namespace cgcn::kernels {

// Once per process, before the first product; later calls do nothing. Any thread may call it.
void prepare_blas();

std::string blas_core_name();  // "SkylakeX", "Haswell" …
bool blas_uses_openmp();

}  // namespace cgcn::kernels
