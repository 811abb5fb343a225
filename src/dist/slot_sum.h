// The gradient of a step: the sum over its slots of what the ranks computed, on every rank, in the order of the tree
// (tree_sum.h).
//
// Reduce-scatter, then all-gather: every rank gets the subtrees of all others for its own share of the numbers, adds
// them up, and sends the sum to all. That moves 2·(R-1)/R of the gradient per rank if a rank's slots are one
// subtree. The first half can begin for some numbers while others are still being computed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/buffer.h"
#include "dist/group.h"
#include "dist/tree_sum.h"

namespace cgcn::dist {

class SlotSum {
 public:
  SlotSum(Group& group, size_t floats) : group_(group), floats_(floats) {}

  // A step of so many slots, of which this rank has own().
  void begin(uint32_t slots);
  SlotRange own() const { return own_; }
  bool is_last() const { return next_ + 1 == own_.end; }

  // The rank's next slot, unless it is the last.
  void add(std::span<const float> values);
  // The rank's last slot: the numbers begin … end of it are there. They stay as they are until finish(). All ranks call
  // it with the same ranges in the same order, and none twice.
  void add_last(std::span<float> values, size_t begin, size_t end);
  // total: the sum. It may be the span of add_last(), and has to be if that was called.
  void finish(std::span<float> total);

  // A rank without slots calls this in place of add_last().
  void add_nothing(size_t begin, size_t end);
  uint64_t bytes() const;  // of buffers
  // What they take at most on any of so many ranks.
  static uint64_t planned_bytes(size_t floats, uint32_t slots, uint32_t ranks);

 private:
  struct Range {
    size_t begin, end;
    Group::Ticket ticket = 0;
    TreeSum<float*> own;           // this rank's subtrees
    std::vector<float*> arriving;  // the others' for this rank's share, in the order of slots
  };
  std::pair<size_t, size_t> share_of(uint32_t rank, const Range& range) const;
  void start(Range range);
  float* add_up(Range& range);
  float* take_buffer();

  Group& group_;
  size_t floats_;
  uint32_t slots_ = 0, next_ = 0;
  SlotRange own_;
  TreeSum<float*> sum_{0};
  std::vector<Buffer<float>> buffers_;
  size_t taken_ = 0;
  std::vector<Range> ranges_;
  Buffer<float> arrived_;
  size_t arrived_floats_ = 0;
};

// The same for a matrix of which each slot has some rows: the sum has the rows that any of them has.
class RowsSum {
 public:
  struct Rows {
    std::vector<uint32_t> numbers;  // rising
    std::vector<float> values;      // of these, one after the other
  };
  RowsSum(Group& group, uint32_t rows, uint32_t columns) : group_(group), rows_(rows), columns_(columns) {}

  void begin(uint32_t slots);
  // The rank's next slot: these rows of the matrix.
  void add(std::span<const uint32_t> numbers, const float* matrix);
  const Rows& finish();
  uint64_t bytes() const { return bytes_; }  // of the largest step
  // What it takes at most if a slot has at most so many rows of the matrix.
  static uint64_t planned_bytes(uint64_t rows, uint64_t columns, uint64_t rows_of_slot, uint32_t slots, uint32_t ranks);

 private:
  void merge(Rows& into, const Rows& other);

  Group& group_;
  uint32_t rows_, columns_, slots_ = 0, next_ = 0;
  TreeSum<Rows> sum_{0};
  Rows total_;
  uint64_t bytes_ = 0;
};

}  // namespace cgcn::dist
