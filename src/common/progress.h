// Progress of anything that may take over two seconds: a bar with the time left on a terminal, a line now and then in a
// log, nothing when quiet or when it was quick. Safe to advance from several threads. There is one line: the newest
// Progress has it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "common/timer.h"

namespace cgcn {

class Progress {
 public:
  // total 0: unknown, a spinner with elapsed time. unit "bytes" formats sizes. steps_per_unit: what is shown is whole
  // units of so many steps, while the bar moves by steps.
  explicit Progress(std::string title, uint64_t total = 0, std::string unit = "", uint64_t steps_per_unit = 1);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t by = 1) { done_.fetch_add(by, std::memory_order_relaxed); }
  void set(uint64_t done) { done_.store(done, std::memory_order_relaxed); }
  // Part of it was done before: it counts, but says nothing of the speed. Call before advance().
  void start_at(uint64_t done) {
    begun_.store(done, std::memory_order_relaxed);
    set(done);
  }
  void set_total(uint64_t total) { total_.store(total, std::memory_order_relaxed); }
  // Shown at the end of the line: loss, validation score …, two blanks between them, the most telling one first.
  void set_note(std::string note);

 private:
  void show_until_stopped();
  bool has_the_line() const;

  std::string title_, unit_, note_;
  const uint64_t steps_per_unit_;
  std::atomic<uint64_t> total_, done_{0}, begun_{0};
  Timer timer_;
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stopping_ = false;
  std::thread thread_;
};

// One line of progress, as Progress shows it.
struct ProgressState {
  std::string title, unit, note;
  uint64_t done = 0, total = 0, begun = 0;
  double seconds = 0;  // since `begun`
  unsigned frame = 0;  // of the spinner
  uint64_t steps_per_unit = 1;
};
std::string format_progress(const ProgressState& state);  // for a log: all of it
// For a terminal, with a bar, in at most `width` columns: what tells least is left out first.
std::string format_progress(const ProgressState& state, size_t width);

std::string format_seconds(double seconds);  // "0.8 s", "12 s", "3 min 20 s", "1 h 05 min"
std::string format_count(uint64_t count);    // "61,859,140"

}  // namespace cgcn
