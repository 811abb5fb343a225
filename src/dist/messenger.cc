#include "dist/messenger.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "common/error.h"

namespace cgcn::dist {
namespace {

constexpr double kLongestBeat = 1, kShortestBeat = 0.02;  // seconds between two signs of life
constexpr double kSpin = 30e-6;                           // seconds of polling before the thread sleeps between polls
constexpr auto kNap = std::chrono::microseconds(50);
constexpr auto kLongNap = std::chrono::microseconds(500);  // while all threads compute: they need the cores
constexpr double kTurn = 2.5;  // seconds by which a rank leaves it to the one before it to speak

}  // namespace

Messenger::Messenger(const std::function<std::unique_ptr<Transport>()>& open, double peer_timeout)
    : peer_timeout_(peer_timeout), beat_(std::clamp(peer_timeout / 8, kShortestBeat, kLongestBeat)) {
  thread_ = std::thread([this, &open] { run(open); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return opened_ || opening_; });
  if (!opening_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(opening_);
}

Messenger::~Messenger() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Messenger::set_hosts(std::vector<std::string> hosts) {
  const std::lock_guard lock(mutex_);
  hosts_ = std::move(hosts);
}

std::string Messenger::name_of(uint32_t rank) {
  const std::lock_guard lock(mutex_);
  return rank < hosts_.size() ? fmt::format("rank {} on {}", rank, hosts_[rank]) : fmt::format("rank {}", rank);
}

Messenger::Ticket Messenger::start(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) {
  Exchange exchange{};
  const auto add = [&](bool out, uint32_t peer, std::byte* data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += Transport::kMostBytes)
      exchange.messages.push_back({out, peer, data + at, std::min(Transport::kMostBytes, bytes - at)});
  };
  for (const Incoming& message : incoming) add(false, message.from, message.bytes.data(), message.bytes.size());
  for (const Outgoing& message : outgoing)
    add(true, message.to, const_cast<std::byte*>(message.bytes.data()), message.bytes.size());
  const std::lock_guard lock(mutex_);
  exchange.ticket = next_ticket_++;
  open_.push_back(exchange.ticket);
  const Ticket ticket = exchange.ticket;
  waiting_.push_back(std::move(exchange));
  changed_.notify_all();
  return ticket;
}

void Messenger::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return !broken_.empty() || std::find(open_.begin(), open_.end(), ticket) == open_.end(); };
  if (!is_over()) {
    ++waiting_threads_;
    changed_.notify_all();
    changed_.wait(lock, is_over);
    --waiting_threads_;
  }
  if (!broken_.empty()) throw Error(broken_);
}

void Messenger::fail(const std::string& message) {
  std::unique_lock lock(mutex_);
  failure_ = message;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !broken_.empty(); });
}

void Messenger::run(const std::function<std::unique_ptr<Transport>()>& open) {
  try {
    transport_ = open();
    rank_ = transport_->rank();
    size_ = transport_->size();
    begin_watching();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    opening_ = std::current_exception();
    changed_.notify_all();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    opened_ = true;
    changed_.notify_all();
  }
  try {
    work_until_closed();
    end_watching();
  } catch (const std::exception& problem) {
    break_with(fmt::format("{}: {}", name_of(rank_), problem.what()), /*unreachable=*/true);
  }
  transport_.reset();
}

void Messenger::work_until_closed() {
  std::vector<Exchange> active;
  Timer since_progress;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (waiting_.empty() && !closing_ && failure_.empty()) {
        if (active.empty())
          changed_.wait_for(lock, std::chrono::duration<double>(beat_));
        else if (since_progress.seconds() > kSpin)
          changed_.wait_for(lock, waiting_threads_ > 0 ? kNap : kLongNap);
      }
      if (!waiting_.empty()) since_progress.restart();
      for (Exchange& exchange : waiting_) active.push_back(std::move(exchange));
      waiting_.clear();
      if (!broken_.empty() || (closing_ && active.empty())) return;
    }
    if (progress(active)) since_progress.restart();
    watch();
  }
}

// Whether anything arrived or left.
bool Messenger::progress(std::vector<Exchange>& active) {
  bool moved = false;
  std::vector<Ticket> finished;
  for (Exchange& exchange : active) {
    if (!exchange.begun)
      for (Message& message : exchange.messages)
        message.request = message.outgoing
                              ? transport_->send(message.peer, Tag::kData, {message.data, message.bytes})
                              : transport_->receive(message.peer, Tag::kData, {message.data, message.bytes});
    exchange.begun = true;
    for (size_t i = 0; i < exchange.messages.size();) {
      bool done = false;
      try {
        done = transport_->done(exchange.messages[i].request);
      } catch (const std::runtime_error& problem) {
        lose(exchange.messages[i].peer, fmt::format("the connection broke: {}", problem.what()));
        return true;
      }
      if (!done) {
        ++i;
        continue;
      }
      moved = true;
      exchange.messages[i] = exchange.messages.back();
      exchange.messages.pop_back();
    }
    if (exchange.messages.empty()) finished.push_back(exchange.ticket);
  }
  if (finished.empty()) return moved;
  std::erase_if(active, [](const Exchange& exchange) { return exchange.messages.empty(); });
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [&](Ticket t) { return std::find(finished.begin(), finished.end(), t) != finished.end(); });
  changed_.notify_all();
  return true;
}

void Messenger::begin_watching() {
  const uint32_t first = rank_ == 0 ? 1 : 0, last = rank_ == 0 ? size_ : 1;
  for (uint32_t rank = first; rank < last; ++rank) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->rank = rank;
    begin_listening(*peers_.back());
  }
}

// Whether the one before it has left, so that this one could.
bool Messenger::send_control(Peer& peer, const Control& control) {
  if (peer.sending && !transport_->done(peer.send)) return false;
  peer.outgoing = control;
  peer.send = transport_->send(peer.rank, Tag::kControl, std::as_bytes(std::span(&peer.outgoing, 1)));
  return peer.sending = true;
}

// Rank 0 gives every other rank the same time, and speaks first: a rank that is cut off takes it for silent, too.
double Messenger::patience_with(const Peer& peer) const {
  return peer_timeout_ + (peer.rank == 0 ? std::min(10.0, kTurn * rank_) : 0);
}

void Messenger::watch() {
  std::string failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  if (!failure.empty()) return announce(fmt::format("{}: {}", name_of(rank_), failure));
  // This process may itself have been stopped: the others' signs of life are on their way.
  const bool was_stopped = since_looked_.seconds() > std::max(beat_ * 4, peer_timeout_ / 2);
  since_looked_.restart();
  if (since_beat_.seconds() <= beat_) return;
  since_beat_.restart();
  for (const auto& peer : peers_) {
    send_control(*peer, {});
    listen(*peer);
    if (was_stopped) peer->since_heard.restart();
    if (peer->since_heard.seconds() > patience_with(*peer))
      return lose(peer->rank, fmt::format("gave no sign of life for {:.0f} s", peer->since_heard.seconds()));
  }
}

void Messenger::listen(Peer& peer) {
  while (transport_->done(peer.receive)) {
    if (peer.incoming.is_failure != 0) return break_with(peer.incoming.text);
    peer.since_heard.restart();
    begin_listening(peer);
  }
}

void Messenger::begin_listening(Peer& peer) {
  peer.receive = transport_->receive(peer.rank, Tag::kControl, std::as_writable_bytes(std::span(&peer.incoming, 1)));
}

// Rank 0 says it, so that it is said once; if rank 0 does not end the job soon, this rank does.
void Messenger::announce(const std::string& text) {
  if (rank_ == 0) return break_with(text);
  Control control{1};
  text.copy(control.text, sizeof control.text - 1);
  Peer& first = *peers_.front();
  const Timer timer;
  for (bool sent = false; timer.seconds() < 2 * kTurn; std::this_thread::sleep_for(kNap)) {
    if (!sent) sent = send_control(first, control);
    first.sending = first.sending && !transport_->done(first.send);  // which is what moves it
    listen(first);
    if (const std::lock_guard lock(mutex_); !broken_.empty()) return;
  }
  break_with(text);
}

void Messenger::lose(uint32_t rank, const std::string& how) {
  break_with(
      fmt::format("{} {}; the job is ended\nhint: start again when it is back; train --run RUN --resume continues a "
                  "training on any number of machines",
                  name_of(rank), how),
      /*unreachable=*/true);
}

// Every rank learns why if that is still possible; then the job is over.
void Messenger::break_with(const std::string& message, bool unreachable) {
  {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) return;
  }
  transport_->abort(message, unreachable);
  const std::lock_guard lock(mutex_);
  broken_ = message;
  changed_.notify_all();
}

void Messenger::end_watching() {
  for (const auto& peer : peers_) {
    transport_->cancel(peer->receive);
    const Timer timer;
    while (peer->sending && !transport_->done(peer->send) && timer.seconds() < kLongestBeat) std::this_thread::yield();
  }
}

}  // namespace cgcn::dist
