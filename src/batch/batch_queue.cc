#include "batch/batch_queue.h"

#include <algorithm>

#include "common/error.h"
#include "common/session.h"
#include "common/timer.h"

namespace cgcn {
namespace {

// Waking a thread takes up to fifty microseconds, and it takes a core from the step.
constexpr double kQuickSeconds = 50e-6;

}  // namespace

BatchQueue::BatchQueue(const BatchSource& source, uint32_t epoch, uint32_t end_epoch, uint32_t index, uint32_t ahead,
                       Share share)
    : source_(source),
      share_(std::move(share)),
      end_(uint64_t{end_epoch} * source.batches_per_epoch()),
      next_(first_from(uint64_t{epoch} * source.batches_per_epoch() + index)) {
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

uint64_t BatchQueue::first_from(uint64_t number) const {
  const uint32_t per_epoch = source_.batches_per_epoch();
  while (share_ && number < end_) {
    const uint32_t index = share_(static_cast<uint32_t>(number % per_epoch));
    number = number / per_epoch * per_epoch + std::min(index, per_epoch);
    if (index < per_epoch) return number;
  }
  return number;
}

void BatchQueue::prepare(uint64_t turn, uint64_t number) {
  const uint32_t per_epoch = source_.batches_per_epoch();
  const Timer timer;
  BatchStorage& storage = *ring_[turn % ring_.size()];
  source_.prepare(static_cast<uint32_t>(number / per_epoch), static_cast<uint32_t>(number % per_epoch), storage);
  storage.batch.seconds = timer.seconds();
}

void BatchQueue::prepare_ahead() {
  std::unique_lock lock(mutex_);
  while (next_ < end_) {
    // The batch before taken_ is in use: its slot is free only when the next one has been taken.
    changed_.wait(lock, [&] { return stopping_ || (!next_is_quick() && prepared_ < taken_ + ring_.size() - 1); });
    if (stopping_ || next_ >= end_) return;
    const uint64_t turn = prepared_, number = next_;
    preparing_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      prepare(turn, number);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    preparing_ = false;
    failure_ = failure;
    if (!failure) {
      prepared_ = turn + 1;
      next_ = first_from(number + 1);
      quick_ = ring_[turn % ring_.size()]->batch.seconds < kQuickSeconds;
    }
    changed_.notify_all();
    if (failure) return;
  }
}

const Batch& BatchQueue::next() {
  std::unique_lock lock(mutex_);
  CGCN_CHECK(taken_ < prepared_ || next_ < end_, "no batch is left");
  const uint64_t turn = taken_;
  if (next_is_quick()) {  // holding the lock: the thread begins none meanwhile
    prepare(turn, next_);
    prepared_ = ++taken_;
    next_ = first_from(next_ + 1);
    quick_ = ring_[turn % ring_.size()]->batch.seconds < kQuickSeconds;
    if (!quick_) changed_.notify_all();
    return ring_[turn % ring_.size()]->batch;
  }
  ++taken_;
  if (!quick_) changed_.notify_all();
  changed_.wait(lock, [&] { return prepared_ > turn || failure_; });
  if (prepared_ <= turn) std::rethrow_exception(failure_);
  return ring_[turn % ring_.size()]->batch;
}

}  // namespace cgcn
