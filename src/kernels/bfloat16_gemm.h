// Dense products of bfloat16 matrices with sums in float32, by the tile unit (AMX), by AVX512-BF16, or on processors
// with neither by the float32 products of widened tiles. Single-threaded calls, as those of gemm.h.
//
// OpenBLAS 0.3.21 has no such product for this layout. oneDNN 2.6 dies of an illegal instruction in its AMX products on
// Emerald Rapids, needs libgomp, and makes a kernel for every number of rows; hence these.
//
// The right factor is packed once and read by many products: panels of 16 columns, in which rows 2i and 2i + 1
// alternate, as the instructions take them. Rows and columns are filled with zeros up to multiples of 32.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/bfloat16.h"

namespace cgcn::kernels {

enum class BFloat16Kernels { kFloat32, kAvx512, kAmx };

BFloat16Kernels best_bfloat16_kernels();       // of this processor
std::string name_of(BFloat16Kernels kernels);  // "AMX", "AVX512-BF16", "float32"

struct PackedMatrix {
  const BFloat16* data = nullptr;
  size_t rows = 0, columns = 0;

  static constexpr size_t kUnit = 32, kPanel = 16;
  static size_t round_up(size_t n) { return (n + kUnit - 1) / kUnit * kUnit; }
  static size_t elements(size_t rows, size_t columns) { return round_up(rows) * round_up(columns); }
  const BFloat16* panel(size_t first_column) const { return data + first_column * round_up(rows); }
  // begin is a multiple of 32.
  PackedMatrix columns_from(size_t begin, size_t end) const { return {panel(begin), rows, end - begin}; }
};

// Columns of B, or of Wᵀ, or of B in bfloat16, into their place of `packed`, which has room for all. columns.begin is a
// multiple of 32, columns.end too or the last one.
void pack(ConstMatrix b, RowRange columns, BFloat16* packed);
void pack_transposed(ConstMatrix w, RowRange columns, BFloat16* packed);
void pack(ConstHalfMatrix b, RowRange columns, BFloat16* packed);

// C = A·B [+ bias, added to every row]. C is of either precision.
void multiply(ConstHalfMatrix a, const PackedMatrix& b, Rows c, const float* bias = nullptr);
// C = Aᵀ·B.
void multiply_by_transpose_of(ConstHalfMatrix a_transposed, const PackedMatrix& b, Matrix c);

// What a thread that has computed such products keeps for the next; of C = Aᵀ·B for an A of up to so many rows.
size_t product_scratch_bytes(size_t transposed_rows = 0);

// For the kernels' own file of each instruction set: C = A·B + bias and the packing, as above.
struct BFloat16Functions {
  void (*multiply)(ConstHalfMatrix a, const PackedMatrix& b, Rows c, const float* bias);
  void (*pack)(ConstMatrix b, RowRange columns, BFloat16* packed);
  void (*pack_transposed)(ConstMatrix w, RowRange columns, BFloat16* packed);
  void (*pack_half)(ConstHalfMatrix b, RowRange columns, BFloat16* packed);
  // out's columns beyond a's rows become zero. Null: factors are widened, and need no turning.
  void (*transpose)(ConstHalfMatrix a, HalfMatrix out);
  size_t scratch_bytes;  // what a thread that has multiplied keeps
};
const BFloat16Functions* bfloat16_functions(BFloat16Kernels kernels);  // null: this processor has no such thing
const BFloat16Functions* amx_functions();
const BFloat16Functions* avx512_functions();
bool avx512_is_faster();  // than widened tiles

}  // namespace cgcn::kernels
