// OpenBLAS as this program wants it: loaded when the first product needs it, without threads of its own, with the
// kernels that this CPU deserves. Products are single-threaded calls; threads are ours. A program that uses OpenBLAS as
// well, such as Python with NumPy, keeps its own with its own settings: ours is then a second copy.
//
// OpenBLAS 0.3.21 does not know CPUs that are younger than itself and gives them its oldest kernels (a fifth of the
// speed). If that has happened it is told the newest core that it does know and that this CPU can run.
#pragma once

#include <cblas.h>

#include <string>

namespace cgcn::kernels {

// Loads OpenBLAS once per process; later calls do nothing. Any thread may call it. Error if it is not installed, or if
// a limit on address space (ulimit -v) is too low for it: it would wait for ever for the memory that it cannot get.
void prepare_blas();

decltype(&cblas_sgemm) blas_sgemm();
std::string blas_core_name();  // "SkylakeX", "Haswell" …
std::string blas_version();    // "0.3.21"
// Other kernels than those of this CPU, before the first product. Error if OpenBLAS has no such choice.
void use_blas_core(const std::string& name);

}  // namespace cgcn::kernels
