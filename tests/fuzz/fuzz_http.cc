// A request to the server of train --live, sent over a socket of this machine. "PORT" and "TOKEN" in it stand for the
// server's. Whatever is sent, the answer is HTTP with the length that it announces; without the token, or with another
// Host than this machine, there is no page.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "fuzz_support.h"
#include "report/live_server.h"

namespace {

std::string exchange(uint16_t port, const std::string& request) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const linger at_once{1, 0};  // no port is left waiting behind thousands of connections
  ::setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  CGCN_CHECK(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  for (size_t at = 0; at < request.size();) {
    const ssize_t sent = ::send(client, request.data() + at, request.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) break;
    at += static_cast<size_t>(sent);
  }
  ::shutdown(client, SHUT_WR);
  std::string answer;
  char bytes[4096];
  for (ssize_t got; (got = ::recv(client, bytes, sizeof bytes, 0)) > 0;) answer.append(bytes, static_cast<size_t>(got));
  ::close(client);
  return answer;
}

void check_answer(const std::string& answer, const std::string& request, const std::string& token) {
  if (answer.empty()) {  // only where the head of the request never ended
    CGCN_CHECK(request.find("\r\n\r\n") == std::string::npos);
    return;
  }
  CGCN_CHECK(answer.starts_with("HTTP/1.1 "));
  const size_t head = answer.find("\r\n\r\n"), length = answer.find("\r\nContent-Length: ");
  CGCN_CHECK(head != std::string::npos && length < head);
  CGCN_CHECK(std::stoull(answer.substr(length + 18)) == answer.size() - head - 4);
  if (!answer.starts_with("HTTP/1.1 200")) return;
  std::string lower = request;  // names of hosts may be in any case
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  CGCN_CHECK(lower.find("127.0.0.1") != std::string::npos || lower.find("localhost") != std::string::npos ||
             lower.find("[::1]") != std::string::npos);
  CGCN_CHECK(request.find("/" + token + "/") != std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static cgcn::LiveServer server({[] { return "page"; }, [] { return "{}"; }}, 0);
  std::string request(reinterpret_cast<const char*>(data), size);
  if (const size_t at = request.find("PORT"); at != std::string::npos)
    request.replace(at, 4, std::to_string(server.port()));
  if (const size_t at = request.find("TOKEN"); at != std::string::npos) request.replace(at, 5, server.token());
  check_answer(exchange(server.port(), request), request, server.token());
  return 0;
}
