// While it exists, numbers too small for a normal float (below 1.2e-38) are zero on this thread.
//
// Arithmetic on them takes many times as long on some processors. The optimiser meets them: weight decay alone
// brings the moments of a weight without a gradient there.
#pragma once

#include <cstdint>

namespace cgcn::kernels {

class FlushTinyNumbers {
 public:
  FlushTinyNumbers() : before_(read()) { write(before_ | kFlush); }
  ~FlushTinyNumbers() { write(before_); }
  FlushTinyNumbers(const FlushTinyNumbers&) = delete;
  FlushTinyNumbers& operator=(const FlushTinyNumbers&) = delete;

 private:
#if defined(__x86_64__)
  using Register = uint32_t;
  static constexpr Register kFlush = 0x8040;  // MXCSR: results to zero, operands are zero
  static Register read() { return __builtin_ia32_stmxcsr(); }
  static void write(Register value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kFlush = uint64_t{1} << 24;  // FPCR.FZ
  static Register read() {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(Register value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
#else
  using Register = uint32_t;
  static constexpr Register kFlush = 0;
  static Register read() { return 0; }
  static void write(Register) {}
#endif

  Register before_;
};

}  // namespace cgcn::kernels
