// A web server for tests, which behaves well or badly as told.
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
#include "base/unique_fd.h"
#include "net/http.h"

namespace muster::net {

// One request as it came, and the means to answer it.
class Exchange {
 public:
  Exchange(int fd, const absl::Notification& end) : fd_(fd), end_(end) {}

  const std::string& method() const { return method_; }
  const std::string& target() const { return target_; }
  // "" when there is none; names in lower case.
  std::string header(const std::string& name) const;

  // The body; waits for all of it, or for `bytes`.
  std::string Body(int64_t bytes = int64_t{1} << 60);
  void Reply(int status, absl::string_view body = "", const Headers& headers = {});
  void Send(absl::string_view bytes);  // as they are
  void Cut() { cut_ = true; }          // closes the connection when the handler returns
  void Stall();                        // says nothing until the server ends

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

// Listens on loopback, at a port that is told.
UniqueFd ListenOnLoopback(int& port);

// Listens on loopback; every connection has a thread, and the handler is called for each request.
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
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> requests_ = 0;
  absl::Notification end_;
  absl::Mutex mutex_;
  std::list<UniqueFd> open_ ABSL_GUARDED_BY(mutex_);
  std::list<std::jthread> threads_;  // of Accept() alone
  std::jthread acceptor_;
};

}  // namespace muster::net
