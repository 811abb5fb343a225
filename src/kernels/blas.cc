#include "kernels/blas.h"

#include <cblas.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "common/log.h"

// In no header, and weak: a build of OpenBLAS for one kind of CPU lacks them, and that is fine.
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
}

namespace cgcn::kernels {
namespace {

bool is_core_without_avx2(std::string_view name) {
  constexpr std::array<std::string_view, 14> kOld = {"Katmai",      "Coppermine", "Northwood", "Prescott",   "Banias",
                                                     "Atom",        "Core2",      "Penryn",    "Dunnington", "Nehalem",
                                                     "Sandybridge", "Athlon",     "Opteron",   "Barcelona"};
  for (const auto old : kOld)
    if (name == old) return true;
  return false;
}

// The newest core known to OpenBLAS whose instructions this CPU has; null where there is nothing better than the
// oldest.
const char* best_core() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
#endif
  return nullptr;
}

void correct_core() {
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return;
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;  // the user has decided
  const char* core = best_core();
  if (core == nullptr || !is_core_without_avx2(blas_core_name())) return;
  gotoblas_dynamic_quit();
  ::setenv("OPENBLAS_CORETYPE", core, 1);
  gotoblas_dynamic_init();
}

}  // namespace

std::string blas_core_name() { return openblas_get_corename(); }

bool blas_uses_openmp() { return openblas_get_parallel() == OPENBLAS_OPENMP; }

void prepare_blas() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!blas_uses_openmp()) log::warn("OpenBLAS is not its OpenMP build; install libopenblas0-openmp for full speed");
    correct_core();
  });
}

}  // namespace cgcn::kernels
