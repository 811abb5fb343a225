// Preparing batches allocates nothing once the storage is there. Counted at the two doors through which this program's
// memory comes: operator new and aligned_alloc. A sanitizer has doors of its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "batch/batch_queue.h"
#include "batch/cluster_batches.h"
#include "common/log.h"
#include "random_dataset.h"
#include "support.h"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

extern "C" void* __libc_memalign(size_t alignment, size_t size);  // NOLINT: glibc's name
extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept {
  ++allocations;
  return __libc_memalign(alignment, size);
}
[[gnu::noinline]] void* operator new(size_t size) {  // inlined, GCC takes malloc and delete for a mismatch
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cgcn {
namespace {

TEST(Allocations, NoneWhileBatchesArePrepared) {
  log::set_level(log::Level::kQuiet);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const test::TemporaryFolder folder;
    write_store(folder / "s", test::random_dataset(seed), StagedDirectory::Existing::kRefuse);
    PartitionOptions partition;
    partition.method = PartitionMethod::kRandom;
    partition.parts = 8;
    const ClusterLayout layout = ensure_partition(Store(folder / "s"), partition).layout;
    const ClusterBatches batches(layout, {.clusters_per_batch = 3,
                                          .draw = seed % 2 == 0 ? ClusterDraw::kPermutation : ClusterDraw::kIndependent,
                                          .normalisation = {NormalisationKind::kSelfDiagonal}});
    const uint64_t at_first = allocations;
    BatchQueue queue(batches, 0, 5);
    queue.next();  // the thread has started
    const uint64_t before = allocations;
    EXPECT_GT(before, at_first) << "the counter does not count";
    for (uint32_t i = 1; i < 5 * batches.batches_per_epoch(); ++i) queue.next();
    EXPECT_EQ(allocations, before);
  }
}

}  // namespace
}  // namespace cgcn

#endif
