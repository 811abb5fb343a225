#include "common/session.h"

#include <utility>

namespace cgcn {
namespace {

constexpr double kAskEvery = 0.02;  // seconds
thread_local Session* current_session = nullptr;

}  // namespace

Session::Session(std::function<void(const std::string&)> log, std::function<bool()> wants_stop)
    : log_(std::move(log)), wants_stop_(std::move(wants_stop)), thread_(std::this_thread::get_id()) {}

bool Session::stopped() {
  if (!stopped_ && wants_stop_ && std::this_thread::get_id() == thread_ && since_asked_.seconds() > kAskEvery) {
    since_asked_.restart();
    if (wants_stop_()) stopped_ = true;
  }
  return stopped_;
}

Session* Session::current() { return current_session; }

SessionScope::SessionScope(Session* session) : before_(std::exchange(current_session, session)) {}
SessionScope::~SessionScope() { current_session = before_; }

}  // namespace cgcn
