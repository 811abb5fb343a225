// NumPy's .npy header: what every array of a store begins with, and what users bring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cgcn {

struct NpyHeader {
  char kind = 0;            // 'f' float, 'i' signed, 'u' unsigned, 'b' bool, 'S' bytes, 'U' text, 'O' objects …
  uint32_t item_bytes = 0;  // bytes per element ('U': 4 per character)
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<uint64_t> shape;
  size_t data_offset = 0;  // where the elements begin

  uint64_t num_elements() const;  // product of the shape; parse has checked that it does not overflow
  std::string dtype() const;      // as NumPy writes it: "<f4"
};

// Reads the header of a .npy file of version 1 to 3 and checks that the file holds exactly what it declares.
// Throws Error naming `where`. Structured dtypes are refused. 'O' arrays are described but their size is not checked.
NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& where);

// A version 1.0 header of exactly 128 bytes (so that the elements are aligned for SIMD), little-endian, C order.
inline constexpr size_t kNpyHeaderBytes = 128;
std::string make_npy_header(const std::string& dtype, std::span<const uint64_t> shape);

}  // namespace cgcn
