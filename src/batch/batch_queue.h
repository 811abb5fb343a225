// Batches prepared ahead, on a thread of their own, into storage that is used again and again. Batches that take less
// time to prepare than to wake that thread are prepared when they are asked for.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "batch/batch_source.h"

namespace cgcn {

class BatchQueue {
 public:
  // The first batch at or behind `index` of an epoch that this queue is for; batches_per_epoch() or more: none is left
  // in the epoch.
  using Share = std::function<uint32_t(uint32_t index)>;

  // Batches from (epoch, index) on, through the ends of epochs, up to end_epoch (exclusive); `ahead` of them are ready
  // or under preparation while one is in use. The source must outlive the queue. share: only some of them; empty: all.
  BatchQueue(const BatchSource& source, uint32_t epoch, uint32_t end_epoch, uint32_t index = 0, uint32_t ahead = 2,
             Share share = {});
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // The next batch, valid until the next call; throws what preparing it threw. There must be one left.
  const Batch& next();

 private:
  void prepare(uint64_t turn, uint64_t number);
  void prepare_ahead();
  uint64_t first_from(uint64_t number) const;
  bool next_is_quick() const { return quick_ && !preparing_ && prepared_ == taken_; }

  const BatchSource& source_;
  const Share share_;
  const uint64_t end_;  // batches are numbered epoch × batches_per_epoch + index
  std::vector<std::unique_ptr<BatchStorage>> ring_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t prepared_ = 0;   // how many have been; all of them are ready
  uint64_t taken_ = 0;      // how many have been handed out
  uint64_t next_;           // the number of the next one to prepare
  bool quick_ = false;      // the last one took so little time that the next is left to whoever takes it
  bool preparing_ = false;  // by the thread
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace cgcn
