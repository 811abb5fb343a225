// The processes that train together, and what they say to each other.
//
// All ranks call the same functions in the same order. A group of one process is the same code: nothing is sent.
// Everything is made of one primitive, exchange(): messages to and from other ranks, all at once.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "common/error.h"
#include "dist/messenger.h"

namespace cgcn::dist {

// What all ranks throw if one of them failed in Group::together(). Rank 0 tells the user.
class GroupError : public Error {
 public:
  using Error::Error;
};
class GroupInterrupted : public Interrupted {
 public:
  using Interrupted::Interrupted;
};

// Where the time of a rank went that it did not compute, and what it sent.
struct Traffic {
  double waiting = 0, moving = 0;  // seconds: for slower ranks; for bytes
  uint64_t bytes_sent = 0, messages_sent = 0;

  // What there was between two moments.
  void add(const Traffic& now, const Traffic& before) {
    waiting += now.waiting - before.waiting;
    moving += now.moving - before.moving;
    bytes_sent += now.bytes_sent - before.bytes_sent;
    messages_sent += now.messages_sent - before.messages_sent;
  }
};

class Group {
 public:
  Group() : hosts_{""} {}  // of this process alone
  // host: what this machine is called in messages.
  Group(const std::function<std::unique_ptr<Transport>()>& open, double peer_timeout, const std::string& host);
  Group(Group&&) noexcept = default;
  Group& operator=(Group&&) noexcept = default;
  ~Group();  // leaves the job as it is if close() was not called

  uint32_t rank() const { return messenger_ ? messenger_->rank() : 0; }
  uint32_t size() const { return messenger_ ? messenger_->size() : 1; }
  bool is_first() const { return rank() == 0; }  // the one that writes and speaks
  const std::string& host(uint32_t rank) const { return hosts_[rank]; }
  std::string name(uint32_t rank) const;  // "rank 3 on node-7"
  uint32_t ranks_on_this_host() const;
  uint32_t place_on_this_host() const;  // 0: the first rank on its host

  // Messages to and from other ranks. start() returns at once, and their bytes stay where they are until wait().
  using Ticket = Messenger::Ticket;
  Ticket start(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);
  void wait(Ticket ticket);
  void await_others(Ticket ticket);  // the same, for messages so small that the time goes to slower ranks
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);

  // result[r] is what rank r gave.
  std::vector<std::string> all_gather(const std::string& own);
  template <class T>
  std::vector<T> all_gather_values(const T& own) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(size());
    values[rank()] = own;
    all_gather_bytes(std::as_writable_bytes(std::span(values)), sizeof(T));
    return values;
  }
  // result[r] is what rank r gave in to[rank()].
  std::vector<std::string> all_to_all(const std::vector<std::string>& to);
  // What rank 0 has, on every rank.
  void broadcast(std::span<std::byte> bytes);
  template <class T>
  T broadcast_value(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  std::string broadcast(const std::string& text);
  void barrier();

  // Runs work(), which does not speak to other ranks. If it fails on any of them, all throw the same: Interrupted,
  // or a GroupError that names rank and host unless it was the same on all.
  template <class Work>
  auto together(Work&& work) {
    using Result = decltype(work());
    std::exception_ptr failure;
    if constexpr (std::is_void_v<Result>) {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      agree(failure);
    } else {
      std::unique_ptr<Result> result;
      try {
        result = std::make_unique<Result>(work());
      } catch (...) {
        failure = std::current_exception();
      }
      agree(failure);
      return std::move(*result);
    }
  }
  // The same one after the other: rank 0, then the first rank of every other host, then the rest. What the work keeps
  // on disk is made by the first of them, and found by those that see the same disk.
  template <class Work>
  void in_turn(Work&& work) {
    for (uint32_t turn = 0; turn < (size() == 1 ? 1 : 3); ++turn)
      together([&] {
        if (turn == own_turn()) work();
      });
  }

  // For work of rank 0 that the others wait for.
  template <class Work>
  void on_first(Work&& work) {
    together([&] {
      if (is_first()) work();
    });
  }

  // If the ranks do not all say the same: an error that names who says what.
  void require_same(const std::string& what, const std::string& own, const std::string& hint = {});

  // For an error of this rank alone: ends the job. Does not return but in tests.
  void fail(const std::string& message) { messenger_->fail(message); }
  // Every rank comes here at the end.
  void close();

  const Traffic& traffic() const { return traffic_; }

 private:
  void all_gather_bytes(std::span<std::byte> all, size_t each);
  void agree(const std::exception_ptr& failure);
  uint32_t own_turn() const { return is_first() ? 0 : place_on_this_host() == 0 ? 1 : 2; }

  std::unique_ptr<Messenger> messenger_;
  std::vector<std::string> hosts_;
  Traffic traffic_;
};

// The group of one process that all share that have no other.
Group& no_group();

}  // namespace cgcn::dist
