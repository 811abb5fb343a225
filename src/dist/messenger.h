// The thread of a rank that owns the transport. It carries messages while the other threads compute, and watches
// whether the other processes are alive.
//
// Every rank sends rank 0 a sign of life a few times within the timeout, and rank 0 sends one to every rank, however
// long they compute. A rank that is silent for longer has been stopped or cut off: whoever notices names it and ends
// the job. (A process that dies is noticed by mpirun or srun, which end the job within seconds.)
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/timer.h"
#include "dist/transport.h"

namespace cgcn::dist {

struct Outgoing {
  uint32_t to;
  std::span<const std::byte> bytes;
};
struct Incoming {
  uint32_t from;
  std::span<std::byte> bytes;
};

class Messenger {
 public:
  // open is called on the thread. Throws what it throws.
  Messenger(const std::function<std::unique_ptr<Transport>()>& open, double peer_timeout);
  ~Messenger();  // every rank must have come here
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  void set_hosts(std::vector<std::string> hosts);  // for messages

  // Messages that are under way together. All ranks start theirs in the same order.
  using Ticket = uint64_t;
  Ticket start(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);
  void wait(Ticket ticket);  // until all have left and arrived; Error if the group broke (in tests)

  // Ends the job with this message, which rank 0 prints. Returns only in tests.
  void fail(const std::string& message);

 private:
  struct Message {
    bool outgoing;
    uint32_t peer;
    std::byte* data;
    size_t bytes;
    Transport::Request request = 0;
  };
  struct Exchange {
    Ticket ticket;
    std::vector<Message> messages;
    bool begun = false;
  };
  struct Control {
    uint32_t is_failure = 0;
    char text[1020] = {};
  };
  struct Peer {  // one that this rank watches
    uint32_t rank = 0;
    Control incoming, outgoing;
    Transport::Request receive = 0, send = 0;
    bool sending = false;
    Timer since_heard;
  };

  void run(const std::function<std::unique_ptr<Transport>()>& open);
  void work_until_closed();
  bool progress(std::vector<Exchange>& active);
  void begin_watching();
  void watch();
  void begin_listening(Peer& peer);
  void listen(Peer& peer);
  bool send_control(Peer& peer, const Control& control);
  void announce(const std::string& failure);
  void lose(uint32_t rank, const std::string& how);
  void break_with(const std::string& message, bool unreachable = false);
  std::string name_of(uint32_t rank);
  double patience_with(const Peer& peer) const;
  void end_watching();

  const double peer_timeout_, beat_;
  uint32_t rank_ = 0, size_ = 0;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Peer>> peers_;
  Timer since_beat_, since_looked_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Exchange> waiting_;  // not yet seen by the thread
  std::vector<Ticket> open_;       // not yet done
  Ticket next_ticket_ = 1;
  uint32_t waiting_threads_ = 0;
  std::vector<std::string> hosts_;
  std::string failure_;  // to be announced
  std::string broken_;   // why nothing works any more
  std::exception_ptr opening_;
  bool opened_ = false, closing_ = false;
  std::thread thread_;
};

}  // namespace cgcn::dist
