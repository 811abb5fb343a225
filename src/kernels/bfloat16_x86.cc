// bfloat16_gemm.h on x86. Compiled for each instruction set function by function, and called only if the processor has
// it.
#include "kernels/bfloat16_choice.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC 12's own intrinsics
#endif

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CGCN_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define CGCN_AMX __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")))
#include "kernels/bfloat16_x86-inl.h"

namespace cgcn::kernels {
namespace {

struct Processor {
  bool avx512 = false, amx = false;
};

Processor look_at_processor() {
  Processor found;
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0)
    found.avx512 = (a >> 5 & 1) != 0 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!found.avx512 || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  const bool has_tiles = (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;
  found.amx = has_tiles && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return found;
}

const Processor& processor() {
  static const Processor found = look_at_processor();
  return found;
}

}  // namespace

const BFloat16Functions* amx_functions() { return processor().amx ? &kAmxFunctions : nullptr; }
const BFloat16Functions* avx512_functions() { return processor().avx512 ? &kAvx512Functions : nullptr; }
const BFloat16Functions* hidden_avx512_functions() { return &kAvx512Functions; }
// Than widened tiles. Not on Intel's: docs/performance.md.
bool avx512_is_faster() { return processor().avx512 && !__builtin_cpu_is("intel"); }

}  // namespace cgcn::kernels

#else

namespace cgcn::kernels {

const BFloat16Functions* amx_functions() { return nullptr; }
const BFloat16Functions* avx512_functions() { return nullptr; }
const BFloat16Functions* hidden_avx512_functions() { return nullptr; }
bool avx512_is_faster() { return false; }

}  // namespace cgcn::kernels

#endif
