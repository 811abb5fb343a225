#include "dist/slot_sum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/error.h"
#include "common/threads.h"

namespace cgcn::dist {
namespace {

constexpr size_t kBlock = 1 << 14;  // floats
constexpr size_t kLine = 16;        // floats of a cache line
constexpr size_t kMostRanges = 64;  // of a step: more are too small to be sent apart

void add_to(float* sum, const float* values, size_t size) {
  parallel_blocks(size, kBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) sum[i] += values[i];
  });
}

void copy_to(float* to, const float* from, size_t size) {
  parallel_blocks(size, kBlock, [&](size_t begin, size_t end) {
    std::memcpy(to + begin, from + begin, (end - begin) * sizeof(float));
  });
}

std::span<std::byte> bytes_of(float* data, size_t size) { return std::as_writable_bytes(std::span(data, size)); }

// All that a step can bring to a rank of the others' subtrees.
size_t arriving_floats(size_t floats, uint32_t slots, uint32_t rank, uint32_t ranks) {
  if (ranks == 1) return 0;
  size_t subtrees = 0;
  for (uint32_t r = 0; r < ranks; ++r)
    if (r != rank) subtrees += subtrees_of(slots_of(r, ranks, slots), slots).size();
  return (floats / ranks + kLine * kMostRanges) * subtrees;
}

// Subtotals of a rank's slots that are kept at a time; the last slot is not copied.
size_t kept_subtotals(SlotRange own, uint32_t slots) {
  TreeSum<char> sum(slots);
  size_t most = 0;
  for (uint32_t slot = own.begin; slot + 1 < own.end; ++slot) {
    sum.push({0, slot}, 0, [](char, char) {});
    most = std::max(most, sum.subtotals().size());
  }
  return most;
}

}  // namespace

void SlotSum::begin(uint32_t slots) {
  slots_ = slots;
  own_ = slots_of(group_.rank(), group_.size(), slots);
  next_ = own_.begin;
  sum_ = TreeSum<float*>(slots);
  taken_ = 0;
  ranges_.clear();
  arrived_floats_ = 0;
  // At once: what is under way must not move.
  arrived_.reserve_discarding(arriving_floats(floats_, slots, group_.rank(), group_.size()));
}

float* SlotSum::take_buffer() {
  if (taken_ == buffers_.size()) buffers_.emplace_back(floats_);
  return buffers_[taken_++].data();
}

void SlotSum::add(std::span<const float> values) {
  CGCN_CHECK(values.size() == floats_ && next_ + 1 < own_.end);
  auto* const borrowed = const_cast<float*>(values.data());
  const size_t before = sum_.subtotals().size();
  sum_.push({0, next_++}, borrowed, [&](float* sum, const float* other) { add_to(sum, other, floats_); });
  if (sum_.subtotals().back().value == borrowed) {  // it is alone so far
    float*& kept = sum_.subtotals().back().value;
    kept = take_buffer();
    copy_to(kept, borrowed, floats_);
  } else {
    taken_ -= before - sum_.subtotals().size();  // of those that were added to others before them
  }
}

void SlotSum::add_last(std::span<float> values, size_t begin, size_t end) {
  CGCN_CHECK(values.size() == floats_ && is_last() && begin <= end && end <= floats_);
  Range range{begin, end, 0, sum_, {}};
  range.own.push({0, next_}, values.data(),
                 [&](float* sum, const float* other) { add_to(sum + begin, other + begin, end - begin); });
  start(std::move(range));
}

void SlotSum::add_nothing(size_t begin, size_t end) {
  CGCN_CHECK(own_.size() == 0);
  start({begin, end, 0, sum_, {}});
}

// A range is shared out in whole cache lines.
std::pair<size_t, size_t> SlotSum::share_of(uint32_t rank, const Range& range) const {
  const size_t lines = (range.end - range.begin + kLine - 1) / kLine, ranks = group_.size();
  const auto at = [&](size_t r) { return std::min(range.end, range.begin + lines * r / ranks * kLine); };
  return {at(rank), at(rank + size_t{1})};
}

void SlotSum::start(Range range) {
  CGCN_CHECK(ranges_.size() < kMostRanges);
  const uint32_t ranks = group_.size();
  if (ranks > 1) {
    const auto [own_begin, own_end] = share_of(group_.rank(), range);
    const size_t own_size = own_end - own_begin;
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    for (uint32_t r = 0; r < ranks; ++r) {
      if (r == group_.rank()) continue;
      const auto [begin, end] = share_of(r, range);
      for (const auto& subtotal : range.own.subtotals())
        outgoing.push_back({r, bytes_of(subtotal.value + begin, end - begin)});
      for (size_t i = subtrees_of(slots_of(r, ranks, slots_), slots_).size(); i > 0; --i) {
        CGCN_CHECK(arrived_floats_ + own_size <= arrived_.size());
        range.arriving.push_back(arrived_.data() + arrived_floats_);
        incoming.push_back({r, bytes_of(range.arriving.back(), own_size)});
        arrived_floats_ += own_size;
      }
    }
    range.ticket = group_.start(outgoing, incoming);
  }
  ranges_.push_back(std::move(range));
}

// This rank's share of a range, from its first number on.
float* SlotSum::add_up(Range& range) {
  const uint32_t ranks = group_.size();
  const auto [begin, end] = share_of(group_.rank(), range);
  const size_t size = end - begin;
  TreeSum<float*> sum(slots_);
  const auto add = [&](float* left, const float* right) { add_to(left, right, size); };
  auto arriving = range.arriving.begin();
  for (uint32_t r = 0; r < ranks; ++r) {
    if (r == group_.rank()) {
      for (const auto& subtotal : range.own.subtotals()) sum.push(subtotal.node, subtotal.value + begin, add);
      continue;
    }
    for (const TreeNode node : subtrees_of(slots_of(r, ranks, slots_), slots_)) sum.push(node, *arriving++, add);
  }
  CGCN_CHECK(sum.subtotals().size() == 1 && sum.subtotals().front().node.index == 0);
  return sum.subtotals().front().value;
}

void SlotSum::finish(std::span<float> total) {
  CGCN_CHECK(total.size() == floats_);
  std::vector<Group::Ticket> gathering;
  for (Range& range : ranges_) {
    const uint32_t ranks = group_.size();
    group_.wait(range.ticket);
    const auto [own_begin, own_end] = share_of(group_.rank(), range);
    if (const float* sum = add_up(range); sum != total.data() + own_begin)
      copy_to(total.data() + own_begin, sum, own_end - own_begin);
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    for (uint32_t r = 0; r < ranks; ++r) {
      if (r == group_.rank()) continue;
      const auto [begin, end] = share_of(r, range);
      outgoing.push_back({r, bytes_of(total.data() + own_begin, own_end - own_begin)});
      incoming.push_back({r, bytes_of(total.data() + begin, end - begin)});
    }
    gathering.push_back(group_.start(outgoing, incoming));
  }
  for (const Group::Ticket ticket : gathering) group_.wait(ticket);
}

uint64_t SlotSum::bytes() const { return sizeof(float) * (buffers_.size() * floats_ + arrived_.size()); }

uint64_t SlotSum::planned_bytes(size_t floats, uint32_t slots, uint32_t ranks) {
  size_t most = 0;
  for (uint32_t r = 0; r < ranks; ++r)
    most = std::max(
        most, kept_subtotals(slots_of(r, ranks, slots), slots) * floats + arriving_floats(floats, slots, r, ranks));
  return sizeof(float) * most;
}

// Subtrees that wait for their other half, two that are being merged, and the sum; between ranks also the messages that
// carry them, as they leave and as they arrive.
uint64_t RowsSum::planned_bytes(uint64_t rows, uint64_t columns, uint64_t rows_of_slot, uint32_t slots,
                                uint32_t ranks) {
  if (slots == 1 && ranks == 1) return 0;
  const uint64_t all = std::min(rows, slots * rows_of_slot),
                 subtrees = std::min(uint64_t{slots} * rows_of_slot, std::bit_width(slots) * rows);
  return sizeof(float) * (columns + 1) * (ranks == 1 ? subtrees + 2 * all : 2 * subtrees + 5 * all);
}

void RowsSum::begin(uint32_t slots) {
  slots_ = slots;
  next_ = slots_of(group_.rank(), group_.size(), slots).begin;
  sum_ = TreeSum<Rows>(slots);
}

void RowsSum::merge(Rows& into, const Rows& other) {
  Rows both;
  both.numbers.reserve(into.numbers.size() + other.numbers.size());
  both.values.reserve(into.values.size() + other.values.size());
  const size_t width = columns_;
  size_t a = 0, b = 0;
  while (a < into.numbers.size() || b < other.numbers.size()) {
    const bool has_a = a < into.numbers.size() && (b == other.numbers.size() || into.numbers[a] <= other.numbers[b]);
    const bool has_b = b < other.numbers.size() && (a == into.numbers.size() || other.numbers[b] <= into.numbers[a]);
    const float* const left = has_a ? &into.values[a * width] : nullptr;
    const float* const right = has_b ? &other.values[b * width] : nullptr;
    both.numbers.push_back(has_a ? into.numbers[a] : other.numbers[b]);
    for (size_t c = 0; c < width; ++c)
      both.values.push_back(has_a && has_b ? left[c] + right[c] : has_a ? left[c] : right[c]);
    a += has_a ? 1 : 0;
    b += has_b ? 1 : 0;
  }
  bytes_ = std::max<uint64_t>(bytes_, sizeof(float) * 3 * (both.numbers.size() + both.values.size()));
  into = std::move(both);
}

void RowsSum::add(std::span<const uint32_t> numbers, const float* matrix) {
  Rows rows{{numbers.begin(), numbers.end()}, std::vector<float>(numbers.size() * columns_)};
  for (size_t i = 0; i < numbers.size(); ++i)
    std::copy_n(matrix + size_t{numbers[i]} * columns_, columns_, &rows.values[i * columns_]);
  sum_.push({0, next_++}, std::move(rows), [&](Rows& a, const Rows& b) { merge(a, b); });
}

namespace {

// The rows from `begin` to `end`, as a message.
void append_rows(std::string& message, const RowsSum::Rows& rows, uint32_t begin, uint32_t end, size_t columns) {
  const auto first = std::lower_bound(rows.numbers.begin(), rows.numbers.end(), begin);
  const auto last = std::lower_bound(first, rows.numbers.end(), end);
  const auto at = static_cast<size_t>(first - rows.numbers.begin()), count = static_cast<size_t>(last - first);
  const uint64_t length = count;
  message.append(reinterpret_cast<const char*>(&length), sizeof length);
  message.append(reinterpret_cast<const char*>(rows.numbers.data() + at), count * sizeof(uint32_t));
  message.append(reinterpret_cast<const char*>(rows.values.data() + at * columns), count * columns * sizeof(float));
}

RowsSum::Rows take_rows(const char*& message, size_t columns) {
  uint64_t count = 0;
  std::memcpy(&count, message, sizeof count);
  message += sizeof count;
  RowsSum::Rows rows{std::vector<uint32_t>(count), std::vector<float>(count * columns)};
  if (count == 0) return rows;
  std::memcpy(rows.numbers.data(), message, count * sizeof(uint32_t));
  message += count * sizeof(uint32_t);
  std::memcpy(rows.values.data(), message, count * columns * sizeof(float));
  message += count * columns * sizeof(float);
  return rows;
}

}  // namespace

const RowsSum::Rows& RowsSum::finish() {
  const uint32_t ranks = group_.size();
  if (ranks == 1) {
    total_ = std::move(sum_.subtotals().front().value);
    return total_;
  }
  const auto first_row = [&](uint32_t rank) { return static_cast<uint32_t>(uint64_t{rows_} * rank / ranks); };
  std::vector<std::string> shares(ranks);
  for (uint32_t r = 0; r < ranks; ++r)
    for (const auto& subtotal : sum_.subtotals())
      append_rows(shares[r], subtotal.value, first_row(r), first_row(r + 1), columns_);
  const std::vector<std::string> arrived = group_.all_to_all(shares);
  TreeSum<Rows> sum(slots_);
  for (uint32_t r = 0; r < ranks; ++r) {
    const char* message = arrived[r].data();
    for (const TreeNode node : subtrees_of(slots_of(r, ranks, slots_), slots_))
      sum.push(node, take_rows(message, columns_), [&](Rows& a, const Rows& b) { merge(a, b); });
  }
  std::string own;
  append_rows(own, sum.subtotals().front().value, 0, rows_, columns_);
  total_ = {};
  for (const std::string& text : group_.all_gather(own)) {
    const char* message = text.data();
    const Rows rows = take_rows(message, columns_);
    total_.numbers.insert(total_.numbers.end(), rows.numbers.begin(), rows.numbers.end());
    total_.values.insert(total_.values.end(), rows.values.begin(), rows.values.end());
  }
  return total_;
}

}  // namespace cgcn::dist
