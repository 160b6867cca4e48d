// TLS between machines: only tasks of the same job may connect.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/testing.h"
#include "cluster/address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/authority.h"
#include "train/wire/grpc_transport.h"
#include "train/wire/testing.h"

// Debian's gRPC leaks some buffers of each TLS connection; only gRPC calls this function.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() { return "leak:gpr_realloc\n"; }

namespace muster::train::wire {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kSoon = absl::Seconds(20);
// Long enough for an authorized client.
constexpr absl::Duration kRefused = absl::Seconds(2);

Tls NewJob() {
  const auto authority = net::Authority::Create({.name = "a job"}).value();
  const auto issued = authority
                          .Issue({.name = cluster::kTaskTlsName,
                                  .hosts = absl::StrCat("DNS:", cluster::kTaskTlsName)})
                          .value();
  return {authority.certificate(), issued.certificate, issued.key};
}

// A proxy between one client and a server that records the client's bytes.
class Eavesdropper {
 public:
  explicit Eavesdropper(const std::string& server) : server_(server) {
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::jthread([this] { Run(); });
  }

  const std::string& address() const { return address_; }
  // REQUIRES: the client has disconnected.
  const std::string& recorded() {
    thread_.join();
    return recorded_;
  }

 private:
  void Run() {
    const base::UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
    const base::UniqueFd server = ConnectTo(server_);
    std::array<pollfd, 2> ends = {{{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}}};
    std::array<char, 16384> buffer;
    while (::poll(ends.data(), ends.size(), -1) > 0) {
      for (size_t from = 0; from < ends.size(); ++from) {
        if (ends[from].revents == 0) continue;
        const ssize_t size = ::read(ends[from].fd, buffer.data(), buffer.size());
        if (size <= 0) return;
        const absl::string_view bytes(buffer.data(), static_cast<size_t>(size));
        if (from == 0) absl::StrAppend(&recorded_, bytes);
        if (!SendAll(ends[1 - from].fd, bytes)) return;
      }
    }
  }

  const std::string server_;
  std::string address_;
  const base::UniqueFd listener_ = BindAnywhere(address_);
  std::string recorded_;
  std::jthread thread_;
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    auto listener = transport_.Listen(address_, [this](Connection& connection, const Caller&) {
      ++served_;
      if (connection.Receive().ok()) {
        Outgoing answer;
        answer.frame.set_text("received");
        connection.Send(std::move(answer));
      }
    });
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }

  bool IsServed(std::optional<Tls> tls, absl::Duration timeout) {
    return IsServedAt(address_, std::move(tls), timeout);
  }
  static bool IsServedAt(const std::string& address, std::optional<Tls> tls,
                         absl::Duration timeout) {
    GrpcTransport other(std::move(tls));
    auto connection = other.Connect(address, {}, timeout);
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

TEST_F(TlsTest, TasksOfOneJobCommunicate) {
  EXPECT_TRUE(IsServed(job_, kSoon));
  EXPECT_EQ(served_, 1);
}

TEST_F(TlsTest, ClientsWithoutTheJobsCertificateAreRejected) {
  EXPECT_FALSE(IsServed(std::nullopt, kRefused)) << "without a certificate";
  const Tls other = NewJob();
  EXPECT_FALSE(IsServed(other, kRefused)) << "of another job";
  EXPECT_FALSE(IsServed(Tls{job_.authority, other.certificate, other.key}, kRefused))
      << "the authority of this job with the certificate of another";
  EXPECT_EQ(served_, 0);
  EXPECT_TRUE(IsServed(job_, kSoon)) << "tasks of the job are still served";
}

TEST_F(TlsTest, TrafficIsEncryptedAndCannotBeReplayed) {
  Eavesdropper eavesdropper(address_);
  ASSERT_TRUE(IsServedAt(eavesdropper.address(), job_, kSoon));
  const std::string& sent = eavesdropper.recorded();
  ASSERT_GT(sent.size(), 1000);
  EXPECT_THAT(sent, testing::Not(HasSubstr("hello")));
  const base::UniqueFd replay = ConnectTo(address_);
  ASSERT_TRUE(SendAll(replay.get(), sent));
  std::array<char, 16384> answer;
  ssize_t size = 0;
  while ((size = ::read(replay.get(), answer.data(), answer.size())) > 0) {
  }
  EXPECT_LE(size, 0) << "the server closes the connection";
  EXPECT_EQ(served_, 1);
  EXPECT_TRUE(IsServed(job_, kSoon));
}

TEST_F(TlsTest, ATaskRejectsAServerOfAnotherJob) {
  const Tls other = NewJob();
  GrpcTransport stranger(other);
  const std::string address = FreeAddress();
  std::atomic<int> served = 0;
  const auto listener =
      stranger.Listen(address, [&served](Connection&, const Caller&) { ++served; });
  ASSERT_TRUE(listener.ok());
  EXPECT_FALSE(transport_.Connect(address, {}, kRefused).ok());
  EXPECT_EQ(served, 0);
}

TEST(TlsFilesTest, AreReadFromAFolder) {
  const base::TempDir temp;
  EXPECT_THAT(Tls::Read(temp.path()).status().message(), HasSubstr("ca.crt"));
  const Tls job = NewJob();
  ASSERT_TRUE(base::ReplaceFile(temp.path() + "/ca.crt", job.authority).ok());
  ASSERT_TRUE(base::ReplaceFile(temp.path() + "/tls.crt", job.certificate).ok());
  ASSERT_TRUE(base::ReplaceFile(temp.path() + "/tls.key", job.key).ok());
  const auto read = Tls::Read(temp.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->key, job.key);
}

}  // namespace
}  // namespace muster::train::wire
