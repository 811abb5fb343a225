#include "common/memory_budget.h"

#include <algorithm>
#include <stdexcept>

#include "common/error.h"
#include "common/memory.h"

namespace cgcn {
namespace {

void check_memory(const std::string& text) {
  if (text == "auto") return;
  try {
    if (parse_bytes(text, "") > 0) return;
  } catch (const Error&) {
  }
  throw std::invalid_argument("is auto or a size such as 2G or 2200M");
}

// Whole megabytes, and three for what the program takes more or less from one start to the next (how much of its own
// file is mapped at a touch depends on the page cache): what a message names is enough when it is typed in.
std::string as_option(uint64_t bytes) { return fmt::format("{}M", (bytes >> 20) + 4); }

}  // namespace

void MemoryOptions::list_options(OptionList& list) {
  list.begin_group("Memory");
  list.add(
          "memory", &memory,
          "memory limit of the process, such as 2G (GiB); what does not fit is read from disk; auto: three quarters of "
          "what is free")
      .value("SIZE")
      .shape(check_memory)
      .resumable()
      .common();
}

uint64_t MemoryOptions::budget(uint32_t processes) const {
  if (given()) return parse_bytes(memory, "--memory");
  return memory_figures().rss + available_memory() / 4 * 3 / processes;
}

uint64_t memory_left(uint64_t budget) {
  const uint64_t taken = memory_figures().rss + kMemoryMargin;
  return budget > taken ? budget - taken : 0;
}

void refuse_budget(uint64_t least, const std::string& what) {
  throw Error(fmt::format("is too little for {}", what), "--memory",
              fmt::format("--memory {} or more", as_option(least)));
}

void refuse_memory_left(uint64_t needed, const std::string& what) {
  refuse_budget(memory_figures().rss + kMemoryMargin + needed, what);
}

void MemoryPlan::need(std::string name, uint64_t bytes) { demands_.push_back({std::move(name), bytes, bytes}); }

size_t MemoryPlan::offer(std::string name, uint64_t whole, uint64_t buffers) {
  demands_.push_back({std::move(name), whole, std::min(buffers, whole), true});
  return demands_.size() - 1;
}

void MemoryPlan::need_at_times(std::string name, uint64_t least) {
  at_times_ = std::move(name);
  at_times_least_ = least;
}

uint64_t MemoryPlan::least() const {
  uint64_t sum = at_times_least_;
  for (const Demand& demand : demands_) sum += demand.buffers;
  return sum;
}

uint64_t MemoryPlan::taken() const {
  uint64_t sum = 0;
  for (const Demand& demand : demands_) sum += demand.in_memory ? demand.whole : demand.buffers;
  return sum;
}

uint64_t MemoryPlan::left_at_times() const {
  uint64_t left = budget_;
  for (const Demand& demand : demands_)
    if (!demand.offered || !demand.in_memory) left -= demand.buffers;
  return left;
}

void MemoryPlan::settle(uint64_t budget, const std::string& what) {
  budget_ = budget;
  if (least() > budget) refuse_budget(least(), what);
  for (Demand& demand : demands_) demand.in_memory = !demand.offered;
  for (Demand& demand : demands_)
    if (demand.offered && taken() - demand.buffers + demand.whole <= budget) demand.in_memory = true;
}

std::string MemoryPlan::text() const {
  std::string text = fmt::format("memory {}:", format_bytes(budget_));
  const char* separator = " ";
  for (const Demand& demand : demands_) {
    if (demand.whole == 0) continue;
    const char* where = !demand.offered ? "" : demand.in_memory ? " in memory" : " from disk";
    text += fmt::format("{}{}{} {}", separator, demand.name, where, format_bytes(demand.whole));
    if (!demand.in_memory) text += fmt::format(" (buffers {})", format_bytes(demand.buffers));
    separator = ", ";
  }
  if (!at_times_.empty()) text += fmt::format("{}{} what is left", separator, at_times_);
  return text;
}

}  // namespace cgcn
