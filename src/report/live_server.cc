#include "report/live_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "common/error.h"

namespace cgcn {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string response(const char* status, const char* type, const std::string& body, const char* more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n{}\r\n{}",
      status, type, body.size(), more, body);
}

std::string refusal(const char* status, const char* more = "") {
  return response(status, "text/plain", std::string(status) + "\n", more);
}

std::string random_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw Error(fmt::format("cannot draw a random token: {}", std::strerror(errno)), "--live");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// "localhost:8000" → "localhost"
std::string without_port(const std::string& host) {
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && colon + 1 < host.size() &&
                        host.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return has_port ? host.substr(0, colon) : host;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The value of the only header of this name (lower case); empty if there is none, or more than one.
std::string header(const std::string& request, const std::string& name) {
  std::string found;
  int times = 0;
  for (size_t at = request.find("\r\n"); at != std::string::npos; at = request.find("\r\n", at + 2)) {
    const size_t end = request.find("\r\n", at + 2), colon = request.find(':', at + 2);
    if (end == std::string::npos || colon >= end) continue;
    if (lower_case(request.substr(at + 2, colon - at - 2)) != name) continue;
    const size_t first = std::min(request.find_first_not_of(" \t", colon + 1), end);
    found = request.substr(first, end - first);
    while (!found.empty() && (found.back() == ' ' || found.back() == '\t')) found.pop_back();
    ++times;
  }
  return times == 1 ? found : "";
}

}  // namespace

struct LiveServer::Connection {
  int socket;
  double deadline;
  std::string request = {}, response = {};
  size_t sent = 0;
  bool for_data = false;
  bool waits_to_write() const { return sent < response.size(); }
  bool has_request() const { return !response.empty(); }
  bool answered() const { return !response.empty() && sent == response.size(); }
};

LiveServer::LiveServer(Content content, uint16_t port, double seconds)
    : content_(std::move(content)), seconds_(seconds), token_(random_token()) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  const int on = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof address;
  if (socket_ < 0 || wake_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(socket_, kMostConnections) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int why = errno;
    stop();
    throw Error(fmt::format("cannot listen on 127.0.0.1:{}: {}", port, std::strerror(why)), "--live-port",
                "another port, or 0 for any free one");
  }
  port_ = ntohs(address.sin_port);
  sigset_t all, before;  // Ctrl-C is for the thread that trains
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::string LiveServer::address() const { return fmt::format("http://127.0.0.1:{}/{}/", port_, token_); }

void LiveServer::finish() {
  if (now() - last_request_ < 4) {
    const uint64_t seen = data_requests_;
    for (int tenths = 0; tenths < 30 && data_requests_ == seen; ++tenths)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  stop();
}

void LiveServer::stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    CGCN_CHECK(::write(wake_, &one, sizeof one) == sizeof one);
    thread_.join();
  }
  for (int* file : {&socket_, &wake_})
    if (*file >= 0) ::close(std::exchange(*file, -1));
}

void LiveServer::serve() {
  std::vector<Connection> connections;
  for (;;) {
    std::vector<pollfd> waits = {{wake_, POLLIN, 0}, {socket_, POLLIN, 0}};
    // The rest wait in the kernel's queue, unless one gives way.
    if (connections.size() >= kMostConnections && oldest_idle(connections) == connections.end()) waits[1].fd = -1;
    double deadline = now() + 3600;
    for (const Connection& connection : connections) {
      waits.push_back({connection.socket, static_cast<short>(connection.waits_to_write() ? POLLOUT : POLLIN), 0});
      deadline = std::min(deadline, connection.deadline);
    }
    ::poll(waits.data(), waits.size(), static_cast<int>(std::max(0.0, (deadline - now()) * 1000)) + 1);
    if (waits[0].revents != 0) break;
    std::vector<Connection> going_on;
    for (size_t i = 0; i < connections.size(); ++i) {
      const bool ready = waits[i + 2].revents != 0;
      if (now() < connections[i].deadline && (!ready || advance(connections[i])))
        going_on.push_back(std::move(connections[i]));
      else
        ::close(connections[i].socket);
    }
    connections = std::move(going_on);
    if (waits[1].revents != 0) accept_one(connections);
  }
  for (const Connection& connection : connections) ::close(connection.socket);
}

std::vector<LiveServer::Connection>::iterator LiveServer::oldest_idle(std::vector<Connection>& connections) {
  return std::find_if(connections.begin(), connections.end(), [](const Connection& c) { return !c.has_request(); });
}

void LiveServer::accept_one(std::vector<Connection>& connections) {
  if (connections.size() >= kMostConnections) {
    const auto idle = oldest_idle(connections);
    if (idle == connections.end()) return;
    ::close(idle->socket);
    connections.erase(idle);
  }
  const int accepted = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted >= 0) connections.push_back({.socket = accepted, .deadline = now() + kMostHeadSeconds});
}

// Reads until the request's head is there, writes until the answer is sent, then reads what still comes until the other
// side closes: to close first, with bytes unread, could take the answer away again.
bool LiveServer::advance(Connection& connection) {
  if (!connection.waits_to_write()) {
    char bytes[2048];
    const ssize_t got = ::recv(connection.socket, bytes, sizeof bytes, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    if (connection.answered()) return true;
    connection.request.append(bytes, static_cast<size_t>(got));
    if (connection.request.find("\r\n\r\n") != std::string::npos)
      connection.response = answer(connection.request, connection.for_data);
    else if (connection.request.size() > kMostRequestBytes)
      connection.response = refusal("431 Request Header Fields Too Large");
    else
      return true;
    connection.deadline = now() + seconds_;
  }
  const ssize_t sent = ::send(connection.socket, connection.response.data() + connection.sent,
                              connection.response.size() - connection.sent, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  connection.sent += static_cast<size_t>(sent);
  if (!connection.answered()) return true;
  ::shutdown(connection.socket, SHUT_WR);
  connection.deadline = std::min(connection.deadline, now() + 1);
  if (connection.for_data) {
    last_request_ = now();
    ++data_requests_;
  }
  return true;
}

std::string LiveServer::answer(const std::string& request, bool& for_data) {
  const size_t method_end = request.find(' '), line_end = request.find("\r\n");
  const size_t path_end = method_end < line_end ? request.find(' ', method_end + 1) : std::string::npos;
  if (path_end == std::string::npos || path_end > line_end || request.compare(path_end, 8, " HTTP/1.") != 0)
    return refusal("400 Bad Request");
  const std::string host = lower_case(header(request, "host"));
  if (const std::string name = without_port(host); name != "127.0.0.1" && name != "localhost" && name != "[::1]")
    return response("403 Forbidden", "text/plain", forwarding_help());
  if (request.compare(0, method_end, "GET") != 0) return refusal("405 Method Not Allowed", "Allow: GET\r\n");
  const std::string path = request.substr(method_end + 1, path_end - method_end - 1);
  const std::string own = "/" + token_ + "/";
  if (path.compare(0, own.size(), own) != 0)
    return response("403 Forbidden", "text/plain",
                    "This is a clustergcn run. Open the whole address that `clustergcn train --live` printed, with the "
                    "token at its end:\n\n  http://127.0.0.1:PORT/TOKEN/\n");
  if (path == own) {
    last_request_ = now();  // a page that has just been opened will ask for data
    return content_of(content_.page, "text/html");
  }
  if (path != own + "data.json") return refusal("404 Not Found");
  for_data = true;
  // Read again a few times per second at most, however often it is asked for.
  if (now() - data_made_ > 0.3) {
    data_ = content_of(content_.data, "application/json");
    data_made_ = now();
  }
  return data_;
}

std::string LiveServer::forwarding_help() const {
  return fmt::format(
      "This page is for a browser that reaches it as 127.0.0.1 or localhost. From another machine, forward the "
      "port:\n\n"
      "  ssh -L 8000:127.0.0.1:{} MACHINE\n\nand open http://127.0.0.1:8000/TOKEN/, with the token of the address that "
      "`clustergcn train --live` printed.\n",
      port_);
}

std::string LiveServer::content_of(const std::function<std::string()>& make, const char* type) {
  try {
    return response("200 OK", type, make());
  } catch (const std::exception& problem) {
    return response("503 Service Unavailable", "text/plain", std::string(problem.what()) + "\n");
  }
}

}  // namespace cgcn
