// Random numbers in bulk: the words that Random (common/random.h) gives one after another, many at a time.
#pragma once

#include <cstdint>
#include <span>

#include "common/random.h"

namespace cgcn::kernels {

struct WordStream {
  uint64_t seed = 0;
  Purpose purpose = Purpose::kTest;
  uint32_t a = 0, b = 0, c = 0;
};

// out[i] is the i-th word of Random(seed, purpose, a, b, c).
void draw_words(const WordStream& stream, std::span<uint32_t> out);

}  // namespace cgcn::kernels
