#include "platform/ssh/probe.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::ssh {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

TEST(ListenerTest, ListensWhereTasksDo) {
  const auto listener = Listener::Open({});
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_THAT(listener->ports(), SizeIs(1));
  EXPECT_THAT(listener->ports()[0], AllOf(Ge(supervise::PortReservations::kFirstPort),
                                          Le(supervise::PortReservations::kLastPort)));
}

TEST(ListenerTest, SkipsFixedPortsInUse) {
  supervise::PortReservations mine;
  const auto taken = mine.Reserve();
  const auto free = mine.Reserve();
  ASSERT_TRUE(taken.ok() && free.ok());
  mine.Release(*free);
  const auto listener = Listener::Open({*taken, *free});
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_THAT(listener->ports(), SizeIs(2));
  EXPECT_EQ(listener->ports()[1], *free);
}

TEST(ListenerTest, ManyHostsMayConnectWithoutAnAccept) {
  const auto listener = Listener::Open({});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::vector<std::string> hosts(200, absl::StrCat("127.0.0.1:", listener->ports()[0]));
  EXPECT_THAT(TryToReach(hosts, absl::Seconds(20)), Each(IsEmpty()));
}

TEST(TryToReachTest, ReportsTheCause) {
  supervise::PortReservations mine;
  const auto port = mine.Reserve();
  ASSERT_TRUE(port.ok());
  const auto results = TryToReach(
      {absl::StrCat("127.0.0.1:", *port), "no.such.host.invalid:1", "nonsense"}, absl::Seconds(5));
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_THAT(results[0], HasSubstr("refused"));
  EXPECT_THAT(results[1], HasSubstr("'no.such.host.invalid' cannot be resolved there"));
  EXPECT_EQ(results[2], "no address");
}

TEST(TryToReachTest, TriesAllAddressesInParallel) {
  // A full backlog of one answers no connection.
  const base::UniqueFd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof(address);
  ASSERT_EQ(::bind(full.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  ASSERT_EQ(::getsockname(full.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const base::UniqueFd first(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(first.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  const std::string target = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  const absl::Time start = absl::Now();
  EXPECT_THAT(TryToReach(std::vector<std::string>(10, target), absl::Seconds(1)),
              Each(std::string("no answer")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

}  // namespace
}  // namespace muster::ssh
