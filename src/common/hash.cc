#include "common/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace cgcn {

uint64_t checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(const void* data, size_t bytes) {
  if (bytes > 0) XXH3_128bits_update(state_->xxh, data, bytes);  // one state serves both widths
  return *this;
}
Hasher& Hasher::add(std::string_view text) {
  add_value<uint64_t>(text.size());
  return add(text.data(), text.size());
}
uint64_t Hasher::digest64() const { return XXH3_64bits_digest(state_->xxh); }
std::string Hasher::digest128_hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return hex64(hash.high64) + hex64(hash.low64);
}

std::string hex64(uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace cgcn
