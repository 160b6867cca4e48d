// Who is spoken to between machines: nobody but tasks of the same job.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/testing.h"
#include "base/unique_fd.h"
#include "cluster/address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/authority.h"
#include "train/wire/grpc_transport.h"

// Debian's gRPC forgets some buffers of each TLS connection; nobody but gRPC calls this function.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() { return "leak:gpr_realloc\n"; }

namespace muster::train::wire {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kSoon = absl::Seconds(20);
// Long enough for who would be let in.
constexpr absl::Duration kRefused = absl::Seconds(2);

Tls NewJob() {
  const auto authority = net::Authority::Create({.name = "a job"}).value();
  const auto issued =
      authority.Issue({.name = kTaskTlsName, .hosts = absl::StrCat("DNS:", kTaskTlsName)}).value();
  return {authority.certificate(), issued.certificate, issued.key};
}

// A port that nobody has now.
std::string FreeAddress() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return absl::StrCat("127.0.0.1:", ::ntohs(address.sin_port));
}

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    auto listener = transport_.Listen(address_, [this](Connection& connection) {
      ++served_;
      if (connection.Receive().ok()) {
        Outgoing answer;
        answer.frame.set_text("heard");
        connection.Send(std::move(answer));
      }
    });
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }

  bool IsServed(std::optional<Tls> tls, absl::Duration timeout) {
    GrpcTransport other(std::move(tls));
    auto connection = other.Connect(address_, timeout);
    if (!connection.ok()) return false;
    Outgoing hello;
    hello.frame.set_text("hello");
    return (*connection)->Send(std::move(hello)) && (*connection)->Receive().ok();
  }

  const Tls job_ = NewJob();
  GrpcTransport transport_{job_};
  const std::string address_ = FreeAddress();
  std::atomic<int> served_ = 0;
  std::unique_ptr<Listener> listener_;
};

TEST_F(TlsTest, TasksOfTheJobSpeakToEachOther) {
  EXPECT_TRUE(IsServed(job_, kSoon));
  EXPECT_EQ(served_, 1);
}

TEST_F(TlsTest, StrangersAreNotServed) {
  EXPECT_FALSE(IsServed(std::nullopt, kRefused)) << "without a certificate";
  const Tls other = NewJob();
  EXPECT_FALSE(IsServed(other, kRefused)) << "another job's";
  EXPECT_FALSE(IsServed(Tls{job_.authority, other.certificate, other.key}, kRefused))
      << "another job's, by who knows whom to trust";
  EXPECT_EQ(served_, 0);
  EXPECT_TRUE(IsServed(job_, kSoon)) << "and the others still are";
}

TEST_F(TlsTest, ATaskDoesNotSpeakToAStranger) {
  const Tls other = NewJob();
  GrpcTransport stranger(other);
  const std::string address = FreeAddress();
  std::atomic<int> served = 0;
  const auto listener = stranger.Listen(address, [&served](Connection&) { ++served; });
  ASSERT_TRUE(listener.ok());
  EXPECT_FALSE(transport_.Connect(address, kRefused).ok());
  EXPECT_EQ(served, 0);
}

TEST(TlsFilesTest, AreReadFromAFolder) {
  const TempDir temp;
  EXPECT_THAT(Tls::Read(temp.path()).status().message(), HasSubstr("ca.crt"));
  const Tls job = NewJob();
  ASSERT_TRUE(ReplaceFile(temp.path() + "/ca.crt", job.authority).ok());
  ASSERT_TRUE(ReplaceFile(temp.path() + "/tls.crt", job.certificate).ok());
  ASSERT_TRUE(ReplaceFile(temp.path() + "/tls.key", job.key).ok());
  const auto read = Tls::Read(temp.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->key, job.key);
}

}  // namespace
}  // namespace muster::train::wire
