#include "generate/edge_keys.h"

#include <algorithm>

#include "common/interrupt.h"
#include "common/scratch.h"
#include "common/threads.h"

namespace cgcn {

EdgeKeys::EdgeKeys(NodeId n, uint64_t expected, const EdgeRoom& room) {
  constexpr uint64_t kEdgesPerBucket = uint64_t{1} << 20, kMostBuckets = 256;
  // A vector that grows has up to twice what it holds, and two buckets or so are sorted at a time.
  const bool fits = room.scratch.empty() || room.memory / 20 >= expected;
  if (!fits) scratch_ = room.scratch;
  // Low ids are the smaller ones of more edges: the first bucket has twice the mean.
  const uint64_t in_bucket =
      fits ? kEdgesPerBucket : std::clamp<uint64_t>(room.memory / 200, 1024, 8 * kEdgesPerBucket);
  const uint64_t count = std::clamp<uint64_t>(expected / in_bucket, 1, std::min<uint64_t>(kMostBuckets, n));
  width_ = (uint64_t{n} + count - 1) / count;
  buckets_.resize(count);
}

void EdgeKeys::push(Bucket& bucket, EdgeKey key) {
  if (!on_disk()) {
    bucket.keys.push_back(key);
    return;
  }
  if (bucket.chunks.empty() || bucket.used == kChunk) {
    if (!bucket.chunks.empty()) release_scratch(bucket.chunks.back().get(), kChunk * sizeof(EdgeKey));
    bucket.chunks.push_back(make_scratch(scratch_, kChunk * sizeof(EdgeKey)));
    bucket.used = 0;
  }
  keys_of(bucket.chunks.back())[bucket.used++] = key;
}

void EdgeKeys::add(std::span<const EdgeKey> keys) {
  for (const EdgeKey key : keys) push(buckets_[(key >> 32) / width_], key);
}

std::vector<EdgeKey> EdgeKeys::read(const Bucket& bucket) {
  std::vector<EdgeKey> keys;
  keys.reserve(bucket.size());
  for (size_t i = 0; i < bucket.chunks.size(); ++i) {
    const EdgeKey* const chunk = keys_of(bucket.chunks[i]);
    keys.insert(keys.end(), chunk, chunk + (i + 1 < bucket.chunks.size() ? kChunk : bucket.used));
    release_scratch(bucket.chunks[i].get(), kChunk * sizeof(EdgeKey));
  }
  return keys;
}

void EdgeKeys::write(Bucket& bucket, std::vector<EdgeKey> keys) {
  if (!on_disk()) {
    bucket.keys = std::move(keys);
    return;
  }
  bucket = {};
  for (const EdgeKey key : keys) push(bucket, key);
  if (!bucket.chunks.empty()) release_scratch(bucket.chunks.back().get(), kChunk * sizeof(EdgeKey));
}

void EdgeKeys::change(const std::function<void(size_t bucket, std::vector<EdgeKey>&)>& work) {
  parallel_blocks(buckets_.size(), 1, [&](size_t begin, size_t end) {
    for (size_t b = begin; b < end; ++b) {
      throw_if_interrupted();
      std::vector<EdgeKey> keys = on_disk() ? read(buckets_[b]) : std::move(buckets_[b].keys);
      work(b, keys);
      write(buckets_[b], std::move(keys));
    }
  });
}

void EdgeKeys::settle() {
  change([](size_t, std::vector<EdgeKey>& keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  });
}

uint64_t EdgeKeys::size() const {
  uint64_t total = 0;
  for (const Bucket& bucket : buckets_) total += bucket.size();
  return total;
}

void EdgeKeys::filter(const std::function<bool(uint64_t index)>& keep) {
  std::vector<uint64_t> first(buckets_.size());
  uint64_t total = 0;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    first[b] = total;
    total += buckets_[b].size();
  }
  change([&](size_t b, std::vector<EdgeKey>& keys) {
    size_t kept = 0;
    for (size_t i = 0; i < keys.size(); ++i)
      if (keep(first[b] + i)) keys[kept++] = keys[i];
    keys.resize(kept);
  });
}

std::vector<EdgeKey> EdgeKeys::take_all() {
  std::vector<EdgeKey> all;
  for (Bucket& bucket : buckets_) {
    const std::vector<EdgeKey> keys = on_disk() ? read(bucket) : std::move(bucket.keys);
    all.insert(all.end(), keys.begin(), keys.end());
    bucket = {};
  }
  return all;
}

void EdgeKeys::visit(const std::function<void(const EdgeRun&)>& use) const {
  constexpr size_t kRun = 4096;
  std::vector<NodeId> from(kRun), to(kRun);
  for (const Bucket& bucket : buckets_) {
    throw_if_interrupted();
    const std::vector<EdgeKey> read_again = on_disk() ? read(bucket) : std::vector<EdgeKey>();
    const std::vector<EdgeKey>& keys = on_disk() ? read_again : bucket.keys;
    for (size_t at = 0; at < keys.size(); at += kRun) {
      const size_t count = std::min(kRun, keys.size() - at);
      for (size_t i = 0; i < count; ++i) {
        from[i] = static_cast<NodeId>(keys[at + i] >> 32);
        to[i] = static_cast<NodeId>(keys[at + i]);
      }
      use({from.data(), to.data(), nullptr, count});
    }
  }
}

}  // namespace cgcn
