#include "common/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "common/error.h"
#include "common/session.h"

namespace cgcn {
namespace {

enum Request : int { kNothing, kHungUp, kStopped };
std::atomic<int> requested = kNothing;  // a signal handler writes it, all threads read it
static_assert(std::atomic<int>::is_always_lock_free);

// A terminal that closes may send SIGHUP more than once, and a SIGTERM behind it: only who asks twice to stop ends the
// process at once.
void handle_signal(int signal) {
  if (signal == SIGHUP) {
    if (requested == kNothing) requested = kHungUp;
    return;
  }
  if (requested == kStopped) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  requested = kStopped;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = handle_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup: it is to run on
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, not a silent death
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file beyond `ulimit -f`
}

bool interrupted() {
  if (Session* session = Session::current()) return session->stopped();
  return requested != kNothing;
}
void request_interrupt() { requested = kStopped; }
void clear_interrupt() { requested = kNothing; }
void throw_if_interrupted() {
  if (interrupted()) throw Interrupted("interrupted");
}

}  // namespace cgcn
