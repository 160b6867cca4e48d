#include "supervise/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "gmock/gmock.h"
#include "supervise/testing.h"

namespace muster::supervise {
namespace {

using testing::HasSubstr;

// Listens on its own port, so that tests that run in parallel do not collide.
class Listener {
 public:
  explicit Listener(int family, bool listening = true)
      : port_(*reserved_.Reserve()), fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto number = htons(static_cast<uint16_t>(port_));
    const int on = 1;  // as servers do
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in v4{.sin_family = AF_INET, .sin_port = number, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = number, .sin6_addr = in6addr_loopback};
    const bool bound = family == AF_INET
                           ? ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&v4), sizeof(v4)) == 0
                           : ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&v6), sizeof(v6)) == 0;
    if (!bound || (listening && ::listen(fd_.get(), 8) != 0)) fd_.Reset();
  }
  bool works() const { return fd_.valid(); }  // false if this machine lacks the address family
  int port() const { return port_; }
  int fd() const { return fd_.get(); }
  void Close() { fd_.Reset(); }
  void Release() { reserved_.Release(port_); }

 private:
  PortReservations reserved_;
  int port_;
  base::UniqueFd fd_;
};

TEST(PortsTest, SeveralProcessesAtOnceNeverGetTheSamePort) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 200;
  int results[2], hold[2];
  ASSERT_EQ(::pipe(results), 0);
  ASSERT_EQ(::pipe(hold), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(hold[1]);
      PortReservations ports;
      std::string text;
      for (int n = 0; n < kEach; ++n) absl::StrAppend(&text, ports.Reserve().value_or(0), "\n");
      (void)base::WriteAll(results[1], text);  // less than PIPE_BUF, hence atomic
      ::close(results[1]);
      char byte;
      (void)!::read(hold[0], &byte, 1);  // holds the ports until every process has its own
      ::_exit(0);
    }
    children.push_back(pid);
  }
  ::close(results[1]);
  const std::string text = *base::ReadAll(results[0]);
  ::close(hold[1]);
  for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
  ::close(results[0]);
  ::close(hold[0]);

  std::set<int> ports;
  int count = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    int port = 0;
    ASSERT_TRUE(absl::SimpleAtoi(line, &port));
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 32768);
    EXPECT_TRUE(ports.insert(port).second) << port << " twice";
    ++count;
  }
  EXPECT_EQ(count, kProcesses * kEach);
}

TEST(PortsTest, APortOfTheUsersIsReservedOnce) {
  PortReservations first, second;
  const int port = *first.Reserve();
  EXPECT_THAT(std::string(first.ReserveExactly(port).message()),
              HasSubstr("two tasks of this job"));
  const absl::Status status = second.ReserveExactly(port);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another job"));
  first.Release(port);
  EXPECT_TRUE(second.ReserveExactly(port).ok());
}

TEST(PortsTest, APortInUseIsRefusedAndNamed) {
  Listener listener(AF_INET);
  listener.Release();
  PortReservations ports;
  const absl::Status status = ports.ReserveExactly(listener.port());
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("port ", listener.port())));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is in use"));
}

TEST(PortsTest, AShortageOfDescriptorsIsNotReportedAsPortsInUse) {
  PortReservations ports;
  absl::Status any, exact;
  {
    const base::NoDescriptors none;
    any = ports.Reserve().status();
    exact = ports.ReserveExactly(PortReservations::kFirstPort);
    EXPECT_FALSE(IsPortInUse(PortReservations::kFirstPort));
  }
  for (const absl::Status& status : {any, exact}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("Too many open files"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
  }
  EXPECT_TRUE(ports.Reserve().ok());
}

TEST(PortsTest, AReservationEndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    PortReservations ports;
    (void)base::WriteAll(ready[1], absl::StrCat(*ports.Reserve(), "\n"));
    ::pause();
    ::_exit(0);
  }
  char text[16] = {};
  ASSERT_GT(::read(ready[0], text, sizeof(text) - 1), 0);
  ::close(ready[0]);
  ::close(ready[1]);
  const int port = std::atoi(text);
  PortReservations ports;
  EXPECT_FALSE(ports.ReserveExactly(port).ok());
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(ports.ReserveExactly(port).ok());
}

TEST(PortsTest, FindsListenersOfBothFamilies) {
  for (const int family : {AF_INET, AF_INET6}) {
    Listener listener(family);
    if (!listener.works()) continue;  // a machine without IPv6
    EXPECT_TRUE(ListeningPorts().contains(listener.port()));
    EXPECT_TRUE(IsPortInUse(listener.port()));
    listener.Close();
    EXPECT_FALSE(ListeningPorts().contains(listener.port()));
    EXPECT_FALSE(IsPortInUse(listener.port()));
  }
}

TEST(PortsTest, ABoundPortIsInUseButHasNoListener) {
  const Listener bound(AF_INET, /*listening=*/false);
  EXPECT_TRUE(IsPortInUse(bound.port()));
  EXPECT_FALSE(ListeningPorts().contains(bound.port()));
}

// A stopped server leaves connections in TIME_WAIT for a minute. Its port is still free for the
// next server.
TEST(PortsTest, APortWhoseServerHasJustEndedCanBeReserved) {
  Listener server(AF_INET);
  base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(static_cast<uint16_t>(server.port())),
                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  base::UniqueFd accepted(::accept4(server.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted.valid());
  accepted.Reset();  // the side that closes first enters TIME_WAIT
  char byte;
  ASSERT_EQ(::read(client.get(), &byte, 1), 0);
  client.Reset();
  server.Close();
  server.Release();
  PortReservations ports;
  const absl::Status status = ports.ReserveExactly(server.port());
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace muster::supervise
