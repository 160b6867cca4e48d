#include "train/collective/node.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "cluster/address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/authority.h"
#include "train/wire/grpc_transport.h"
#include "train/wire/testing.h"

namespace muster::train {
namespace {

using testing::HasSubstr;
using wire::Frame;

constexpr absl::Duration kSoon = absl::Seconds(20);
constexpr char kCluster[] = R"({"worker": ["a", "b", "c"]})";

wire::Tls NewJob() {
  const auto authority = net::Authority::Create({.name = "a job"}).value();
  const auto issued = authority
                          .Issue({.name = cluster::kTaskTlsName,
                                  .hosts = absl::StrCat("DNS:", cluster::kTaskTlsName)})
                          .value();
  return {authority.certificate(), issued.certificate, issued.key};
}

base::UniqueFd NewSocket() {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(socket.valid());
  return socket;
}

sockaddr_in AddressOf(int rank, int port) {
  return {.sin_family = AF_INET,
          .sin_port = ::htons(static_cast<uint16_t>(port)),
          .sin_addr = LoopbackOf(rank),
          .sin_zero = {}};
}

// Acts like Gloo: listens for one of the other tasks.
base::UniqueFd ListenAs(int rank, int& port) {
  base::UniqueFd socket = NewSocket();
  sockaddr_in bound = AddressOf(rank, 0);
  socklen_t size = sizeof(bound);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&bound), size), 0);
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  port = ::ntohs(bound.sin_port);
  return socket;
}

base::UniqueFd ConnectAs(int rank, int port) {
  base::UniqueFd socket = NewSocket();
  const sockaddr_in peer = AddressOf(rank, port);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
  return socket;
}

base::UniqueFd Accept(const base::UniqueFd& listener) {
  pollfd ready = {listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
  return base::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

void WriteAll(const base::UniqueFd& socket, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t size =
        ::send(socket.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    ASSERT_GT(size, 0);
    done += static_cast<size_t>(size);
  }
}

// Reads until the peer closes the connection.
std::string ReadAll(const base::UniqueFd& socket) {
  std::string all;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    pollfd ready = {socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, 20'000) != 1) {
      ADD_FAILURE() << "neither bytes nor an end after " << all.size();
      return all;
    }
    const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return all;
    all.append(buffer.data(), static_cast<size_t>(size));
  }
}

std::string Noise(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13);
  return bytes;
}

// Three tasks that use this machine as if it were three, with and without certificates.
class NodeTest : public testing::TestWithParam<bool> {
 protected:
  NodeTest() {
    for (int rank = 0; rank < 3; ++rank) nodes_.push_back(Start(rank));
  }

  std::unique_ptr<CollectiveNode> Start(int rank) {
    auto node = CollectiveNode::Start(transport_, {.rank = rank,
                                                   .tasks = tasks_,
                                                   .addresses = addresses_,
                                                   .hello = HelloOf(rank, kCluster),
                                                   .cluster = kCluster,
                                                   .log = [](const std::string&) {}});
    EXPECT_TRUE(node.ok()) << node.status();
    return *std::move(node);
  }
  Frame HelloOf(int rank, const std::string& cluster) const {
    Frame hello;
    hello.set_kind(Frame::HELLO);
    hello.set_cluster(base::Sha256Hex(cluster));
    hello.mutable_peer()->set_role(tasks_[static_cast<size_t>(rank)].role);
    hello.mutable_peer()->set_index(static_cast<uint32_t>(rank));
    return hello;
  }
  // The two ends of a connection from task 2 to task 1.
  std::pair<base::UniqueFd, base::UniqueFd> ConnectTwoToOne() {
    int port = 0;
    const base::UniqueFd listener = ListenAs(1, port);
    nodes_[1]->relay().Expose(port);
    const auto local = nodes_[2]->relay().Forward(1, port);
    EXPECT_TRUE(local.ok()) << local.status();
    base::UniqueFd two = ConnectAs(1, *local);
    return {std::move(two), Accept(listener)};
  }

  const std::vector<cluster::TaskId> tasks_ = {{"worker", 0}, {"worker", 1}, {"worker", 2}};
  const std::vector<std::string> addresses_ = {wire::FreeAddress(), wire::FreeAddress(),
                                               wire::FreeAddress()};
  wire::GrpcTransport transport_{GetParam() ? std::optional(NewJob()) : std::nullopt};
  std::vector<std::unique_ptr<CollectiveNode>> nodes_;
};
INSTANTIATE_TEST_SUITE_P(Tls, NodeTest, testing::Bool());

TEST_P(NodeTest, AllShareOneStore) {
  const auto zero = nodes_[0]->OpenStore(kSoon);
  const auto one = nodes_[1]->OpenStore(kSoon);
  const auto two = nodes_[2]->OpenStore(kSoon);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  EXPECT_EQ((*two)->Get("key").value(), std::nullopt);
  ASSERT_TRUE((*one)->Set("key", std::string("a\0b", 3)).ok());
  EXPECT_EQ((*two)->Get("key").value(), std::string("a\0b", 3));
  EXPECT_EQ((*zero)->Get("key").value(), std::string("a\0b", 3));
  ASSERT_TRUE((*zero)->Set("key", "").ok());
  EXPECT_EQ((*one)->Get("key").value(), "");
  nodes_[0].reset();
  EXPECT_TRUE(absl::IsUnavailable((*one)->Get("key").status()));
}

TEST_P(NodeTest, BytesArriveBothWays) {
  const auto [two, one] = ConnectTwoToOne();
  const std::string there = Noise(20 << 20), back = Noise(15 << 20);
  std::jthread writes([&, &two = two] {
    WriteAll(two, there);
    ::shutdown(two.get(), SHUT_WR);
  });
  std::jthread answers([&, &one = one] {
    WriteAll(one, back);
    ::shutdown(one.get(), SHUT_WR);
  });
  std::string received;
  std::jthread reads([&, &one = one] { received = ReadAll(one); });
  EXPECT_TRUE(ReadAll(two) == back);
  reads.join();
  EXPECT_TRUE(received == there);
}

TEST_P(NodeTest, SentBytesArriveAlthoughTheTaskEnds) {
  auto [two, one] = ConnectTwoToOne();
  const std::string last = Noise(8 << 20);
  std::jthread ends([&, two = std::move(two)]() mutable {
    WriteAll(two, last);
    two = base::UniqueFd();
    nodes_[2].reset();
  });
  EXPECT_TRUE(ReadAll(one) == last);
}

TEST_P(NodeTest, ALostTaskClosesItsConnections) {
  const auto [two, one] = ConnectTwoToOne();
  std::jthread lost([&] { nodes_[1].reset(); });
  EXPECT_EQ(ReadAll(two), "");
}

TEST_P(NodeTest, OtherPortsAreUnreachable) {
  int port = 0;
  const base::UniqueFd listener = ListenAs(1, port);
  const auto local = nodes_[2]->relay().Forward(1, port);
  ASSERT_TRUE(local.ok());
  EXPECT_EQ(ReadAll(ConnectAs(1, *local)), "");
  pollfd ready = {listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

TEST_P(NodeTest, TasksOfOtherJobsAreRejected) {
  for (const Frame::Service service : {Frame::STORE, Frame::RELAY, Frame::PARAMETERS}) {
    Frame stranger = HelloOf(1, "another");
    stranger.set_service(service);
    auto connection = transport_.Connect(addresses_[0], stranger, kSoon);
    ASSERT_TRUE(connection.ok()) << connection.status();
    const auto answer = (*connection)->Receive();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->frame.kind(), Frame::ERROR);
    EXPECT_THAT(answer->frame.text(), HasSubstr("another cluster"));
    EXPECT_FALSE((*connection)->Receive().ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      RemoteKeyValue::Connect(transport_, addresses_[1], HelloOf(2, kCluster), kSoon).status()))
      << "only rank 0 keeps a store";
}

TEST(Loopback, IsInTheOrderOfTheRanks) {
  for (const int rank : {0, 1, 252, 253, 254, 5000}) {
    const uint32_t address = ::ntohl(LoopbackOf(rank).s_addr);
    EXPECT_LT(address, ::ntohl(LoopbackOf(rank + 1).s_addr));
    EXPECT_EQ(address >> 16, 127U << 8 | 77U);
  }
}

}  // namespace
}  // namespace muster::train
