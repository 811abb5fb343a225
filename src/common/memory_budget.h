// One budget for the memory of the whole process, mapped pages included: the option, what is left of it, and the plan
// of what stays in memory and what is read from disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/options.h"

namespace cgcn {

// --memory, declared here for all commands that have it.
struct MemoryOptions {
  std::string memory = "auto";  // or "2G", "2200M" …

  void list_options(OptionList& list);
  bool given() const { return memory != "auto"; }
  // In bytes. auto: what the process has now and three quarters of what is free, which so many processes share.
  uint64_t budget(uint32_t processes = 1) const;
};

// What the program takes in addition to everything that a plan names: code, threads' stacks, the buffers of OpenBLAS,
// what the allocator holds back.
inline constexpr uint64_t kMemoryMargin = uint64_t{24} << 20;

// What of the budget is not resident now, less the margin; 0 if it is used up.
uint64_t memory_left(uint64_t budget);

// "is too little for …", with a budget that would do.
[[noreturn]] void refuse_budget(uint64_t least, const std::string& what);
// The same if a stage needs this much in addition to what the process has now.
[[noreturn]] void refuse_memory_left(uint64_t needed, const std::string& what);

// Demands by name: those that must be in memory, and those that may be read from disk into buffers instead.
class MemoryPlan {
 public:
  void need(std::string name, uint64_t bytes);
  // In memory it takes `whole`, read from disk `buffers`. Offers that come first are kept first.
  size_t offer(std::string name, uint64_t whole, uint64_t buffers);
  // A stage that runs while the offers that were kept can be given back for a time, such as an evaluation between two
  // epochs: it takes what is left, and at least this.
  void need_at_times(std::string name, uint64_t least);

  // Decides what stays in memory. Error with the smallest budget that works if this one does not.
  void settle(uint64_t budget, const std::string& what);
  bool in_memory(size_t offer) const { return demands_[offer].in_memory; }
  uint64_t least() const;          // the smallest budget that works
  uint64_t taken() const;          // by everything that is in memory, once settled
  uint64_t left_at_times() const;  // for the stage that runs at times
  std::string text() const;

 private:
  struct Demand {
    std::string name;
    uint64_t whole = 0, buffers = 0;
    bool offered = false, in_memory = true;
  };
  std::vector<Demand> demands_;
  std::string at_times_;
  uint64_t at_times_least_ = 0, budget_ = 0;
};

}  // namespace cgcn
