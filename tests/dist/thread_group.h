// A group whose ranks are threads of this process, with queues in place of MPI.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "dist/group.h"

namespace cgcn::test {

// What lies between the ranks.
struct Switchboard {
  using Line = std::tuple<uint32_t, uint32_t, dist::Tag>;  // from, to
  std::mutex mutex;
  std::map<Line, std::deque<std::vector<std::byte>>> messages;
  std::vector<bool> stopped;         // by rank
  std::vector<std::string> aborted;  // what was said at the end, and by how many
  explicit Switchboard(uint32_t ranks) : stopped(ranks, false) {}
};

class ThreadTransport final : public dist::Transport {
 public:
  ThreadTransport(Switchboard& board, uint32_t rank) : board_(board), rank_(rank) {}
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return static_cast<uint32_t>(board_.stopped.size()); }

  Request send(uint32_t to, dist::Tag tag, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(board_.mutex);
    board_.messages[{rank_, to, tag}].emplace_back(bytes.begin(), bytes.end());
    return kSent;
  }
  Request receive(uint32_t from, dist::Tag tag, std::span<std::byte> bytes) override {
    waiting_[++last_] = {{from, rank_, tag}, bytes};
    return last_;
  }
  bool done(Request request) override {
    if (request == kSent) return true;
    std::unique_lock lock(board_.mutex);
    while (board_.stopped[rank_] && board_.aborted.empty()) {  // as a process that got SIGSTOP
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      lock.lock();
    }
    const auto at = waiting_.find(request);
    const auto& [line, bytes] = at->second;
    // In the order in which they were asked for, as MPI matches them.
    for (const auto& [other, pending] : waiting_)
      if (other < request && pending.first == line) return false;
    auto& queue = board_.messages[line];
    if (queue.empty()) return false;
    if (queue.front().size() != bytes.size()) throw std::runtime_error("a message of another size");
    std::copy(queue.front().begin(), queue.front().end(), bytes.begin());
    queue.pop_front();
    waiting_.erase(at);
    return true;
  }
  void cancel(Request receive) override { waiting_.erase(receive); }
  // mpirun would end the others: here they are told.
  void abort(const std::string& message, bool /*unreachable*/) override {
    const std::lock_guard lock(board_.mutex);
    board_.aborted.push_back(message);
    std::vector<std::byte> control(1024);
    control[0] = std::byte{1};
    std::memcpy(control.data() + 4, message.data(), std::min<size_t>(message.size(), 1019));
    for (uint32_t r = 0; r < size(); ++r)
      for (uint32_t to = 0; to < size(); ++to) board_.messages[{r, to, dist::Tag::kControl}].push_front(control);
  }

 private:
  static constexpr Request kSent = 0;
  Switchboard& board_;
  uint32_t rank_;
  std::map<Request, std::pair<Switchboard::Line, std::span<std::byte>>> waiting_;
  Request last_ = 0;
};

// Runs work(group) on every rank. timeout: of signs of life, in seconds.
template <class Work>
void run_ranks(Switchboard& board, Work&& work, double timeout = 30, std::vector<std::string> hosts = {}) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < board.stopped.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        dist::Group group([&] { return std::make_unique<ThreadTransport>(board, rank); }, timeout,
                          rank < hosts.size() ? hosts[rank] : fmt::format("host-{}", rank));
        work(group);
        if (const std::lock_guard lock(board.mutex); !board.aborted.empty()) return;
        group.close();
      } catch (const std::exception& problem) {
        ADD_FAILURE() << "rank " << rank << ": " << problem.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

template <class Work>
void run_ranks(uint32_t ranks, Work&& work) {
  Switchboard board(ranks);
  run_ranks(board, work);
  EXPECT_TRUE(board.aborted.empty());
}

}  // namespace cgcn::test
