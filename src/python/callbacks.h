// Python's functions called from the engine, and the interpreter's lock around both.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <string>

#include "clustergcn/clustergcn.h"

namespace clustergcn::python {

namespace py = pybind11;

// While it lives the engine works without the interpreter's lock.
class Unlocked {
 public:
  Unlocked() = default;
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_ = PyEval_SaveThread();
};

// What Python's functions throw inside of the engine's callbacks waits here until the engine has returned.
class Callbacks {
 public:
  explicit Callbacks(py::object log = py::none(), py::object on_epoch = py::none());

  Session session(uint32_t threads);
  void rethrow() {
    if (failed_) std::rethrow_exception(failure_);
  }

 private:
  template <class Work>
  void guard(Work&& work);

  py::object log_, on_epoch_;
  std::exception_ptr failure_;
  bool failed_ = false;
};

// The engine works without the interpreter's lock. What a callback threw comes before what the engine made of it.
template <class Work>
auto run(Callbacks& callbacks, Work&& work) {
  try {
    auto result = [&] {
      const Unlocked unlocked;
      return work();
    }();
    callbacks.rethrow();
    return result;
  } catch (...) {
    callbacks.rethrow();
    throw;
  }
}

}  // namespace clustergcn::python
