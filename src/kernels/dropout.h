// Inverted dropout with masks kept as bits, drawn from Philox: a bit is a pure function of (seed, epoch, batch, stream,
// row, column), whatever the vector width or the number of threads.
//
// 16 random bits decide one element, so that the rate is exact to 2⁻¹⁶. A row of bits is padded to 64 columns. Columns
// 64k … 64k + 63 come from eight Philox draws g = 0 … 7: bit 32·(w / 2) + 4g + 2·(w % 2) + h is half h of word w of
// draw g.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bfloat16.h"

namespace cgcn::kernels {

struct DropoutKey {
  uint64_t seed = 0;
  uint32_t epoch = 0, batch = 0;
  uint32_t stream = 0;  // below 256: which of the step's masks
};

// Bit c of row r is set if the element is kept. Empty (bits null): everything is kept, unscaled.
struct DropoutMask {
  uint8_t* bits = nullptr;
  size_t row_bytes = 0;
  float scale = 1;  // of what is kept: 1 / (1 - rate)

  bool empty() const { return bits == nullptr; }
  uint8_t* row(size_t r) const { return bits + r * row_bytes; }
  static size_t bytes_for(size_t columns) { return (columns + 63) / 64 * 8; }
  // Kernels may load eight bytes from any byte of a row.
  static size_t buffer_bytes(size_t rows, size_t columns) { return rows * bytes_for(columns) + 8; }
  DropoutMask columns_from(size_t c) const {  // c is a multiple of 8
    return empty() ? *this : DropoutMask{bits + c / 8, row_bytes, scale};
  }
  bool keeps(size_t r, size_t c) const { return empty() || ((row(r)[c / 8] >> (c % 8)) & 1) != 0; }
};

// The smallest 16-bit number that is kept: numbers below it drop the element.
inline uint32_t dropout_threshold(float rate) { return static_cast<uint32_t>(rate * 65536.0f + 0.5f); }
inline float dropout_scale(float rate) { return 65536.0f / static_cast<float>(65536 - dropout_threshold(rate)); }

// Draws these columns of these rows of the mask (and the padding up to 64). columns.begin is a multiple of 64; 0 < rate
// < 1.
void draw_dropout(const DropoutKey& key, float rate, RowRange rows, RowRange columns, const DropoutMask& mask);

// out.row(r) = mask(r) ∘ in.row(r). out may be in, and a row in bfloat16 may begin where its float32 one begins.
void apply_dropout(const DropoutMask& mask, RowRange rows, ConstRows in, Rows out);
// The same of all rows without a mask: from either precision to either.
inline void copy_rows(ConstRows in, Rows out) { apply_dropout({}, {0, out.rows}, in, out); }

// out.row(r) = mask(r) ∘ source.row(ids[r]) for a source of float32, of float16 bits or of bfloat16, `columns` wide and
// packed.
void gather_rows(const float* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out);
void gather_rows(const uint16_t* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out);
void gather_rows(const BFloat16* source, const uint32_t* ids, RowRange rows, const DropoutMask& mask, Rows out);

}  // namespace cgcn::kernels
