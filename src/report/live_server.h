// A page for one browser while a run trains: HTTP on 127.0.0.1, GET only, stopped with the run.
//
// One thread serves all requests; it reads what it shows from the run folder, so it shares nothing with training.
// Requests are bounded in size, time and number. The address has a random token, so that other users of the machine
// cannot read the page. The Host header must name the loopback, so that no other site's page can reach it under a name
// of its own (DNS rebinding); its port may be another one: that of an ssh port forward.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace cgcn {

class LiveServer {
 public:
  struct Content {
    std::function<std::string()> page;  // GET /TOKEN/
    std::function<std::string()> data;  // GET /TOKEN/data.json
  };
  static constexpr size_t kMostConnections = 16;
  static constexpr size_t kMostRequestBytes = 8192;
  static constexpr double kMostHeadSeconds = 2;  // a browser sends its request at once, or keeps the connection idle

  // port 0: any free port. Error if it is taken. seconds: what one answer may take.
  LiveServer(Content content, uint16_t port, double seconds = 10);
  ~LiveServer() { stop(); }
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }
  std::string address() const;
  // If a page asked in the last seconds, waits up to three for it to ask once more: it then shows the end.
  void finish();
  void stop();

 private:
  struct Connection;
  void serve();
  static std::vector<Connection>::iterator oldest_idle(std::vector<Connection>& connections);  // has sent no request
  void accept_one(std::vector<Connection>& connections);
  bool advance(Connection& connection);  // false: done with it
  std::string answer(const std::string& request, bool& for_data);
  std::string forwarding_help() const;
  std::string content_of(const std::function<std::string()>& make, const char* type);

  Content content_;
  double seconds_;
  int socket_ = -1, wake_ = -1;
  uint16_t port_ = 0;
  std::string token_;
  std::string data_;  // the last answer to data.json
  double data_made_ = -1e9;
  std::atomic<uint64_t> data_requests_ = 0;
  std::atomic<double> last_request_ = -1e9;
  std::thread thread_;
};

}  // namespace cgcn
