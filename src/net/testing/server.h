// An HTTP server for tests that can be made to misbehave.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/files/unique_fd.h"
#include "net/http.h"

namespace muster::net {

// One request, and the means to respond to it.
class Exchange {
 public:
  Exchange(int fd, const absl::Notification& end) : fd_(fd), end_(end) {}

  const std::string& method() const { return method_; }
  const std::string& target() const { return target_; }
  // Returns "" if absent. REQUIRES: `name` is in lower case.
  std::string header(const std::string& name) const;

  // Reads the body, or at most `bytes` of it; waits until it has arrived.
  std::string Body(int64_t bytes = int64_t{1} << 60);
  void Reply(int status, absl::string_view body = "", const Headers& headers = {});
  void Send(absl::string_view bytes);  // sends raw bytes
  void Cut() { cut_ = true; }          // closes the connection when the handler returns
  void Stall();                        // sends nothing until the server is destroyed

 private:
  friend class TestServer;
  bool ReadHead();
  bool More();

  const int fd_;
  const absl::Notification& end_;
  std::string buffer_;
  std::string method_;
  std::string target_;
  std::map<std::string, std::string> headers_;
  int64_t body_left_ = 0;
  bool cut_ = false;
};

// Listens on a free loopback port and stores it in `port`.
base::UniqueFd ListenOnLoopback(int& port);

// Listens on loopback. Each connection has a thread, which calls the handler for each request.
class TestServer {
 public:
  using Handler = std::function<void(Exchange&)>;
  explicit TestServer(Handler handler);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::string address() const;  // "http://127.0.0.1:PORT"
  int connections() const { return connections_; }
  int requests() const { return requests_; }

 private:
  void Accept();
  void Serve(int fd);

  const Handler handler_;
  base::UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> requests_ = 0;
  absl::Notification end_;
  absl::Mutex mutex_;
  std::list<base::UniqueFd> open_ ABSL_GUARDED_BY(mutex_);
  std::list<std::jthread> threads_;  // used only by Accept()
  std::jthread acceptor_;
};

}  // namespace muster::net
