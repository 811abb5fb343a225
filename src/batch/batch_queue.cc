#include "batch/batch_queue.h"

#include "common/error.h"
#include "common/session.h"
#include "common/timer.h"

namespace cgcn {
namespace {

// Waking a thread takes up to fifty microseconds, and it takes a core from the step.
constexpr double kQuickSeconds = 50e-6;

}  // namespace

BatchQueue::BatchQueue(const BatchSource& source, uint32_t epoch, uint32_t end_epoch, uint32_t index, uint32_t ahead)
    : source_(source),
      end_(uint64_t{end_epoch} * source.batches_per_epoch()),
      prepared_(uint64_t{epoch} * source.batches_per_epoch() + index),
      taken_(prepared_) {
  CGCN_CHECK(ahead > 0);
  for (uint32_t i = 0; i <= ahead; ++i) ring_.push_back(source.make_storage());
  thread_ = std::thread([this, session = Session::current()] {
    const SessionScope scope(session);
    prepare_ahead();
  });
}

BatchQueue::~BatchQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchQueue::prepare(uint64_t number) {
  const uint32_t per_epoch = source_.batches_per_epoch();
  const Timer timer;
  BatchStorage& storage = *ring_[number % ring_.size()];
  source_.prepare(static_cast<uint32_t>(number / per_epoch), static_cast<uint32_t>(number % per_epoch), storage);
  storage.batch.seconds = timer.seconds();
}

void BatchQueue::prepare_ahead() {
  std::unique_lock lock(mutex_);
  while (prepared_ < end_) {
    // Batch taken_ - 1 is in use: its slot is free only when the next one has been taken.
    changed_.wait(lock, [&] { return stopping_ || (!next_is_quick() && prepared_ < taken_ + ring_.size() - 1); });
    if (stopping_) return;
    const uint64_t number = prepared_;
    preparing_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      prepare(number);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    preparing_ = false;
    failure_ = failure;
    if (!failure) {
      prepared_ = number + 1;
      quick_ = ring_[number % ring_.size()]->batch.seconds < kQuickSeconds;
    }
    changed_.notify_all();
    if (failure) return;
  }
}

const Batch& BatchQueue::next() {
  std::unique_lock lock(mutex_);
  CGCN_CHECK(taken_ < end_, "no batch is left");
  const uint64_t number = taken_;
  if (next_is_quick()) {  // holding the lock: the thread begins none meanwhile
    prepare(number);
    prepared_ = ++taken_;
    quick_ = ring_[number % ring_.size()]->batch.seconds < kQuickSeconds;
    if (!quick_) changed_.notify_all();
    return ring_[number % ring_.size()]->batch;
  }
  ++taken_;
  if (!quick_) changed_.notify_all();
  changed_.wait(lock, [&] { return prepared_ > number || failure_; });
  if (prepared_ <= number) std::rethrow_exception(failure_);
  return ring_[number % ring_.size()]->batch;
}

}  // namespace cgcn
