// The server of --live, as a browser and as a hostile neighbour see it.
#include "report/live_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "common/error.h"
#include "support.h"

namespace cgcn {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

int connect_to(const char* address, uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience{20, 0};
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(client, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return client;
  ::close(client);
  return -1;
}

std::string read_all(int client) {
  std::string text;
  char bytes[4096];
  for (ssize_t got; (got = ::recv(client, bytes, sizeof bytes, 0)) > 0;) text.append(bytes, static_cast<size_t>(got));
  ::close(client);
  return text;
}

class LiveServerTest : public testing::Test {
 protected:
  std::string ask(const std::string& request) {
    const int client = connect_to("127.0.0.1", server_.port());
    EXPECT_EQ(::send(client, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    return read_all(client);
  }
  std::string get(const std::string& path, const std::string& host) {
    return ask("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  }
  std::string page_path() { return "/" + server_.token() + "/"; }
  std::string own_host() { return "127.0.0.1:" + std::to_string(server_.port()); }

  LiveServer server_{{[] { return std::string("<p>page"); }, [] { return std::string(3'000'000, 'x'); }}, 0};
};

TEST_F(LiveServerTest, ServesThePageAndItsData) {
  EXPECT_THAT(get(page_path(), own_host()), testing::AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("text/html"),
                                                           testing::EndsWith("\r\n\r\n<p>page")));
  const std::string data = get(page_path() + "data.json", "localhost:" + std::to_string(server_.port()));
  EXPECT_THAT(data.substr(0, 300), HasSubstr("application/json"));
  EXPECT_EQ(data.size() - data.find("\r\n\r\n") - 4, 3'000'000u);
}

TEST_F(LiveServerTest, RefusesOtherHostsMethodsAndPaths) {
  const std::string port = ":" + std::to_string(server_.port());
  for (const std::string& host : {"evil.example" + port, "127.0.0.1.evil.example" + port,
                                  std::string("localhost:evil.example"), std::string(":80")})
    EXPECT_THAT(get(page_path() + "data.json", host), StartsWith("HTTP/1.1 403")) << host;
  EXPECT_THAT(ask("GET " + page_path() + " HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask("GET " + page_path() + " HTTP/1.1\r\nHost: " + own_host() + "\r\nHost: evil.example\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(get(page_path() + "../config.toml", own_host()), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: " + own_host() + "\r\n\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(std::string(20000, 'x')), StartsWith("HTTP/1.1 431"));
}

// Another user of the machine can connect, and learns nothing without the token.
TEST_F(LiveServerTest, NeedsTheTokenOfTheAddress) {
  EXPECT_EQ(server_.token().size(), 32u);
  EXPECT_EQ(server_.address(), "http://" + own_host() + page_path());
  std::string guess = server_.token();
  guess[31] = guess[31] == '0' ? '1' : '0';
  for (const std::string& path : {std::string("/"), std::string("/data.json"), "/" + guess + "/",
                                  "/" + guess + "/data.json", "/" + server_.token(), "//" + server_.token() + "/"}) {
    const std::string answer = get(path, own_host());
    EXPECT_THAT(answer, testing::AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("Open the whole address"))) << path;
    EXPECT_THAT(answer, testing::Not(HasSubstr(server_.token())));
  }
  const LiveServer other({[] { return ""; }, [] { return ""; }}, 0);
  EXPECT_NE(other.token(), server_.token());
}

TEST_F(LiveServerTest, APortForwardWorksAndAnotherNameIsToldOfIt) {
  for (const char* host : {"127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000"})
    EXPECT_THAT(get(page_path(), host), StartsWith("HTTP/1.1 200")) << host;
  const std::string answer = get(page_path(), "machine.example:8000");
  EXPECT_THAT(answer, testing::AllOf(StartsWith("HTTP/1.1 403"),
                                     HasSubstr("ssh -L 8000:127.0.0.1:" + std::to_string(server_.port()))));
  EXPECT_THAT(answer, testing::Not(HasSubstr(server_.token())));
}

TEST_F(LiveServerTest, IsOnTheLoopbackAddressAlone) {
  EXPECT_LT(connect_to("127.0.0.2", server_.port()), 0);  // an address of this machine that it is not bound to
}

// As many silent clients as it takes at a time: the oldest gives way to the next one, the others are dropped soon.
TEST_F(LiveServerTest, SilentClientsHoldNothingUp) {
  std::vector<int> silent;
  for (size_t i = 0; i < LiveServer::kMostConnections; ++i) {
    silent.push_back(connect_to("127.0.0.1", server_.port()));
    ASSERT_EQ(::send(silent.back(), "GET /", 5, MSG_NOSIGNAL), 5);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(get(page_path(), own_host()), StartsWith("HTTP/1.1 200"));
  char byte;
  EXPECT_EQ(::recv(silent.back(), &byte, 1, MSG_DONTWAIT), -1);  // it did not take their time
  EXPECT_EQ(errno, EAGAIN);
  for (const int client : silent) EXPECT_EQ(read_all(client), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

TEST_F(LiveServerTest, AClientThatDoesNotReadHoldsNothingUp) {
  const int client = connect_to("127.0.0.1", server_.port());
  const std::string request = "GET " + page_path() + "data.json HTTP/1.1\r\nHost: " + own_host() + "\r\n\r\n";
  ASSERT_GT(::send(client, request.data(), request.size(), MSG_NOSIGNAL), 0);
  EXPECT_THAT(get(page_path(), own_host()), StartsWith("HTTP/1.1 200"));
  server_.stop();
  EXPECT_LT(connect_to("127.0.0.1", server_.port()), 0);
  ::close(client);
}

TEST_F(LiveServerTest, SaysThatAPortIsTaken) {
  const std::string message = test::message_of<Error>([&] {
    LiveServer({[] { return ""; }, [] { return ""; }}, server_.port());
  });
  EXPECT_THAT(message, testing::AllOf(HasSubstr("--live-port"), HasSubstr("in use")));
}

TEST(LiveServer, AFailureToReadIsAnAnswer) {
  LiveServer server({[]() -> std::string { throw Error("damaged", "metrics.jsonl:3"); }, [] { return ""; }}, 0);
  const int client = connect_to("127.0.0.1", server.port());
  const std::string request =
      "GET /" + server.token() + "/ HTTP/1.1\r\nHost: localhost:" + std::to_string(server.port()) + "\r\n\r\n";
  ASSERT_GT(::send(client, request.data(), request.size(), MSG_NOSIGNAL), 0);
  EXPECT_THAT(read_all(client), testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("metrics.jsonl:3")));
}

}  // namespace
}  // namespace cgcn
