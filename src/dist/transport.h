// What carries bytes between the processes of a group: MPI (mpi_transport.h); in tests, queues between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cgcn::dist {

// Messages between two ranks arrive in the order in which they were sent, for each of these apart.
enum class Tag : int { kData = 1, kControl = 2 };

// Used by one thread alone, from the call that made it on.
class Transport {
 public:
  using Request = uint32_t;
  virtual ~Transport() = default;  // after every rank has come to its end

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  // Both begin and return at once; the bytes stay where they are until done() says true. At most kMostBytes.
  virtual Request send(uint32_t to, Tag tag, std::span<const std::byte> bytes) = 0;
  virtual Request receive(uint32_t from, Tag tag, std::span<std::byte> bytes) = 0;
  // Whether it is; the request is gone then. Throws std::runtime_error if the connection is broken.
  virtual bool done(Request request) = 0;
  virtual void cancel(Request receive) = 0;

  // Ends every process of the job after saying why. Returns only in tests. unreachable: one of them gives no answer.
  virtual void abort(const std::string& message, bool unreachable) = 0;

  static constexpr size_t kMostBytes = size_t{1} << 30;
};

}  // namespace cgcn::dist
