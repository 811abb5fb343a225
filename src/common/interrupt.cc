#include "common/interrupt.h"

#include <csignal>
#include <cstdlib>

#include "common/error.h"

namespace cgcn {
namespace {

volatile std::sig_atomic_t requested = 0;

void handle_signal(int signal) {
  if (requested != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  requested = 1;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = handle_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, not a silent death
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file beyond `ulimit -f`
}

bool interrupted() { return requested != 0; }
void request_interrupt() { requested = 1; }
void clear_interrupt() { requested = 0; }
void throw_if_interrupted() {
  if (interrupted()) throw Interrupted("interrupted");
}

}  // namespace cgcn
