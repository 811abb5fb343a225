// The flat buffers' runs that cover a parameter, or its touched rows, in blocks for the threads.
#pragma once

#include <algorithm>

#include "common/threads.h"
#include "nn/model.h"

namespace cgcn {

class ParameterRuns {
 public:
  ParameterRuns(const Parameter& parameter, const TouchedRows& touched) : parameter_(parameter), touched_(touched) {}

  size_t blocks() const { return (count() + per_block() - 1) / per_block(); }

  // use(block, offset, size) for every run; runs of a block follow each other on one thread.
  template <class Use>
  void for_each(Use&& use) const {
    parallel_blocks(count(), per_block(), [&](size_t begin, size_t end) {
      const size_t block = begin / per_block();
      if (touched_.all) return use(block, parameter_.offset + begin, end - begin);
      for (size_t i = begin; i < end; ++i)
        use(block, parameter_.offset + uint64_t{touched_.rows[i]} * parameter_.columns, size_t{parameter_.columns});
    });
  }

 private:
  static constexpr size_t kBlockFloats = 1 << 14;
  size_t count() const { return touched_.all ? parameter_.size() : touched_.rows.size(); }
  size_t per_block() const {
    return touched_.all ? kBlockFloats : std::max<size_t>(1, kBlockFloats / parameter_.columns);
  }
  const Parameter& parameter_;
  TouchedRows touched_;
};

}  // namespace cgcn
