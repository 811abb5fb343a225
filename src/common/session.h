// Whom a piece of work talks to. The command line has none: lines and progress go to stderr, Ctrl-C stops the work. A
// program that embeds the engine gives each of its calls a session of its own, so that two at once share nothing.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "common/timer.h"

namespace cgcn {

class Session {
 public:
  // log: gets lines for people. wants_stop: asked now and then by the thread that made the session. Either may be
  // empty.
  explicit Session(std::function<void(const std::string&)> log = {}, std::function<bool()> wants_stop = {});

  void write_line(const std::string& line) const {
    if (log_) log_(line);
  }
  bool stopped();  // on any thread
  void stop() { stopped_ = true; }

  static Session* current();  // of the work that this thread does; null: none

 private:
  std::function<void(const std::string&)> log_;
  std::function<bool()> wants_stop_;
  std::thread::id thread_;
  Timer since_asked_;
  std::atomic<bool> stopped_{false};
};

// This thread works for that session, as long as it lives. Threads that it starts, and loops, are told by whoever
// starts them.
class SessionScope {
 public:
  explicit SessionScope(Session* session);
  ~SessionScope();
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;

 private:
  Session* before_;
};

}  // namespace cgcn
