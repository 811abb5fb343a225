// Counter-based random numbers: Philox-4x32-10 (Salmon et al., SC 2011).
//
// A number is a pure function of (seed, purpose, a, b, c, index), so that any thread can draw any part of a stream, the
// result is the same for any number of threads, and a resumed run continues exactly where it stopped.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

namespace cgcn {

// What a stream is for: two purposes never share numbers. Values are part of what makes runs repeatable: only append.
enum class Purpose : uint32_t {
  kTest = 0,
  kSplit = 1,
  kGenerate = 2,
  kPartition = 3,
  kBatchOrder = 4,
  kInitialise = 5,
  kDropout = 6,
  kSample = 7,
};

using PhiloxWords = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr uint32_t kPhiloxM0 = 0xD2511F53, kPhiloxM1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9, kPhiloxW1 = 0xBB67AE85;

inline PhiloxWords philox(PhiloxWords counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxM0} * counter[0], p1 = uint64_t{kPhiloxM1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += kPhiloxW0;
    key[1] += kPhiloxW1;
  }
  return counter;
}

// Spreads a seed and a purpose over the 64 key bits (SplitMix64's finaliser, a bijection of the seed for each purpose).
inline PhiloxKey philox_key(uint64_t seed, Purpose purpose) {
  uint64_t z = seed + 0x9E3779B97F4A7C15u * (static_cast<uint64_t>(purpose) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return {static_cast<uint32_t>(z), static_cast<uint32_t>(z >> 32)};
}

// A stream of numbers for one (seed, purpose, a, b, c). Cheap to make: one per row is fine.
class Random {
 public:
  Random(uint64_t seed, Purpose purpose, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0)
      : key_(philox_key(seed, purpose)), counter_{0, a, b, c} {}

  uint32_t next() {
    if (used_ == 4) {
      words_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }
  uint64_t next64() {
    const uint64_t low = next();
    return low | (uint64_t{next()} << 32);
  }
  // Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }
  // Uniform in [0, 1), 53 bits.
  double uniform_double() { return static_cast<double>(next64() >> 11) * 0x1p-53; }
  // Uniform in [0, n), without bias (Lemire). n > 0.
  uint32_t below(uint32_t n) {
    uint64_t product = uint64_t{next()} * n;
    if (static_cast<uint32_t>(product) < n) {
      const uint32_t threshold = (0u - n) % n;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next()} * n;
    }
    return static_cast<uint32_t>(product >> 32);
  }
  // Standard normal (Box-Muller, one of the pair).
  float normal() {
    const double u = 1.0 - uniform_double(), v = uniform_double();
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
  }
  template <class T>
  void shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(static_cast<uint32_t>(i))]);
  }

 private:
  PhiloxKey key_;
  PhiloxWords counter_;
  PhiloxWords words_{};
  uint32_t used_ = 4;
};

}  // namespace cgcn
