#include "kernels/random_words.h"

namespace cgcn::kernels {

void draw_words(const WordStream& stream, std::span<uint32_t> out) {
  Random random(stream.seed, stream.purpose, stream.a, stream.b, stream.c);
  for (uint32_t& word : out) word = random.next();
}

}  // namespace cgcn::kernels
