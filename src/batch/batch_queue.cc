#include "batch/batch_queue.h"

#include "common/error.h"
#include "common/timer.h"

namespace cgcn {

BatchQueue::BatchQueue(const BatchSource& source, uint32_t epoch, uint32_t end_epoch, uint32_t index, uint32_t ahead)
    : source_(source),
      end_(uint64_t{end_epoch} * source.batches_per_epoch()),
      prepared_(uint64_t{epoch} * source.batches_per_epoch() + index),
      taken_(prepared_) {
  CGCN_CHECK(ahead > 0);
  for (uint32_t i = 0; i <= ahead; ++i) ring_.push_back(source.make_storage());
  thread_ = std::thread([this] { prepare_ahead(); });
}

BatchQueue::~BatchQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchQueue::prepare_ahead() {
  const uint32_t per_epoch = source_.batches_per_epoch();
  for (uint64_t number = prepared_; number < end_; ++number) {
    {
      // Batch taken_ - 1 is in use: its slot is free only when the next one has been taken.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || number < taken_ + ring_.size() - 1; });
      if (stopping_) return;
    }
    std::exception_ptr failure;
    try {
      const Timer timer;
      BatchStorage& storage = *ring_[number % ring_.size()];
      source_.prepare(static_cast<uint32_t>(number / per_epoch), static_cast<uint32_t>(number % per_epoch), storage);
      storage.batch.seconds = timer.seconds();
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      failure_ = failure;
      if (!failure) prepared_ = number + 1;
    }
    changed_.notify_all();
    if (failure) return;
  }
}

const Batch& BatchQueue::next() {
  std::unique_lock lock(mutex_);
  CGCN_CHECK(taken_ < end_, "no batch is left");
  const uint64_t number = taken_++;
  changed_.notify_all();
  changed_.wait(lock, [&] { return prepared_ > number || failure_; });
  if (prepared_ <= number) std::rethrow_exception(failure_);
  return ring_[number % ring_.size()]->batch;
}

}  // namespace cgcn
