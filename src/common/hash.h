// Checksums and content hashes: XXH3 (libxxhash), 64 bits for an array, 128 bits for what identifies a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cgcn {

uint64_t checksum(const void* data, size_t bytes);

// Feeds on bytes in any pieces; the result depends on their concatenation alone.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& add(const void* data, size_t bytes);
  Hasher& add(std::string_view text);  // length first, so that "ab","c" differs from "a","bc"
  template <class T>
  Hasher& add_value(T value) {
    return add(&value, sizeof value);
  }
  uint64_t digest64() const;
  std::string digest128_hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hex64(uint64_t value);

}  // namespace cgcn
