#include "common/interrupt.h"

#include <atomic>

#include "common/error.h"
#include "common/session.h"

namespace cgcn {
namespace {

std::atomic<bool> requested = false;  // a signal handler writes it, all threads read it
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

bool interrupted() {
  if (Session* session = Session::current()) return session->stopped();
  return requested;
}
void request_interrupt() { requested = true; }
void clear_interrupt() { requested = false; }
void throw_if_interrupted() {
  if (interrupted()) throw Interrupted("interrupted");
}

}  // namespace cgcn
