#include "python/callbacks.h"

#include <unistd.h>

#include "python/values.h"

namespace clustergcn::python {
namespace {

// Threads that are at work when the interpreter ends must not touch it any more: they wait for the end of the process.
bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}
void stay_away_from_an_ending_interpreter() {
  while (interpreter_ends()) ::pause();
}
class Locked {
 public:
  Locked() {
    stay_away_from_an_ending_interpreter();
    state_ = PyGILState_Ensure();
  }
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace

Unlocked::~Unlocked() {
  stay_away_from_an_ending_interpreter();
  PyEval_RestoreThread(state_);
}

Callbacks::Callbacks(py::object log, py::object on_epoch) : log_(std::move(log)), on_epoch_(std::move(on_epoch)) {}

template <class Work>
void Callbacks::guard(Work&& work) {
  try {
    work();
  } catch (...) {
    if (!failed_) failure_ = std::current_exception();
    failed_ = true;
  }
}

Session Callbacks::session(uint32_t threads) {
  Session session;
  session.threads = threads;
  session.log = [this](const std::string& line) {
    const Locked lock;
    if (!log_.is_none()) guard([&] { log_(line); });
  };
  session.wants_stop = [this] {
    const Locked lock;
    if (PyErr_CheckSignals() != 0) guard([] { throw py::error_already_set(); });  // on other threads: never
    return failed_;
  };
  session.on_epoch = [this](const Epoch& epoch) {
    const Locked lock;
    bool go_on = true;
    if (!on_epoch_.is_none()) guard([&] { go_on = !on_epoch_(to_dict(epoch)).is(py::bool_(false)); });
    return go_on && !failed_;
  };
  return session;
}

}  // namespace clustergcn::python
