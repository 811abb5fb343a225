#include "process/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "common/interrupt.h"
#include "common/mapping_faults.h"

namespace cgcn {
namespace {

std::atomic<bool> asked_to_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// A terminal that closes may send SIGHUP more than once, and a SIGTERM behind it: only who asks twice to stop ends the
// process at once.
void handle_stop(int signal) {
  if (signal != SIGHUP && asked_to_stop.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  request_interrupt();
}

void write_text(const char* text) {
  size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t done = ::write(STDERR_FILENO, text, left);
    if (done <= 0) return;
    text += done;
    left -= static_cast<size_t>(done);
  }
}

// Only calls that a signal handler may make.
void handle_fault(int signal, siginfo_t* info, void*) {
  if (const char* path = find_mapping(info->si_addr)) {
    write_text("\nerror: ");
    write_text(path);
    write_text(
        ": was cut short, or cannot be read, while it was in use\n"
        "hint: run again; if the file is part of a store, import or generate it again\n");
    ::_exit(1);
  }
  ::signal(signal, SIG_DFL);  // the access is made again, and ends the process
}

}  // namespace

// Writing to a closed stdout fails, as it did: the file in its place is open for reading only.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY) != stream)
      ::_exit(1);  // lower numbers are taken by now, so it gets this one
}

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = handle_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup: it is to run on
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, not a silent death
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file beyond `ulimit -f`
}

void install_mapping_fault_handler() {
  struct sigaction action {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace cgcn
