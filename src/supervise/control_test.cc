#include "supervise/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "gmock/gmock.h"
#include "supervise/testing.h"

namespace muster::supervise {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

constexpr absl::Duration kTimeout = absl::Seconds(30);

// Runs a server on its own thread. The server echoes requests, refuses "no", and counts calls.
class ControlTest : public LaunchTest {
 protected:
  void Serve() { Serve(home_); }
  void Serve(const std::string& directory) {
    directory_ = directory;
    loop_ = *process::EventLoop::Create();
    auto server = ControlServer::Listen(directory, *loop_, [this](const Json& request) -> Json {
      ++handled_;
      if (request.value("op", "") == "no") return {{"error", "not now"}};
      return {{"echo", request}};
    });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] {
      while (!stop_) {
        ASSERT_TRUE(loop_->Wait(absl::Milliseconds(5)).ok());
        for (int i = notify_.exchange(0); i > 0; --i) server_->NotifyWatchers();
      }
      server_.reset();
    });
  }
  void StopServing() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  ~ControlTest() override { StopServing(); }

  ControlClient Connect() {
    auto client = ControlClient::Connect(directory_);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  // Returns true if the server closes the connection.
  static bool IsDropped(const ControlClient& client) {
    for (;;) {
      pollfd waiting{.fd = client.fd(), .events = POLLIN};
      if (::poll(&waiting, 1, 30'000) != 1) return false;
      char buffer[65536];
      const ssize_t n = ::read(client.fd(), buffer, sizeof(buffer));
      if (n <= 0) return true;
    }
  }
  static void Send(const ControlClient& client, absl::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(client.fd(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n < 0) return;  // dropped meanwhile
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  void ExpectThatItStillServes() { EXPECT_TRUE(Connect().Call({{"op", "hello"}}, kTimeout).ok()); }

  std::string directory_;
  std::unique_ptr<process::EventLoop> loop_;
  std::unique_ptr<ControlServer> server_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> notify_ = 0;  // notifications to send
  std::atomic<int> handled_ = 0;
  std::thread thread_;
};

TEST_F(ControlTest, AnswersRequestsInOrder) {
  Serve();
  ControlClient client = Connect();
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.Call({{"op", "x"}, {"i", i}}, kTimeout);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ((*answer)["echo"]["i"], i);
  }
}

TEST_F(ControlTest, ARefusalHasTheSupervisorsMessage) {
  Serve();
  const auto answer = Connect().Call({{"op", "no"}}, kTimeout);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(answer.status().message(), "not now");
}

TEST_F(ControlTest, AMissingSupervisorIsUnavailable) {
  EXPECT_EQ(ControlClient::Connect(home_).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ControlTest, OnlyThisUserMayConnect) {
  Serve();
  struct stat info {};
  ASSERT_EQ(::stat((home_ + "/control.sock").c_str(), &info), 0);
  ASSERT_EQ(::stat(home_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0077, 0u);
}

TEST_F(ControlTest, WatchersAreNotifiedAndSeeTheEnd) {
  Serve();
  ControlClient client = Connect();
  ASSERT_TRUE(client.Call({{"op", "watch"}}, kTimeout).ok());
  EXPECT_TRUE(client.DrainNotifications());
  notify_ = 1;
  pollfd waiting{.fd = client.fd(), .events = POLLIN};
  EXPECT_EQ(::poll(&waiting, 1, 30'000), 1);
  EXPECT_TRUE(client.DrainNotifications());
  StopServing();
  EXPECT_EQ(::poll(&waiting, 1, 30'000), 1);
  EXPECT_FALSE(client.DrainNotifications());
  EXPECT_FALSE(std::filesystem::exists(home_ + "/control.sock"));
}

TEST_F(ControlTest, AWatcherThatNeverReadsDoesNotBlockOthers) {
  Serve();
  ControlClient sleeper = Connect();
  ASSERT_TRUE(sleeper.Call({{"op", "watch"}}, kTimeout).ok());
  notify_ = 2000;  // more than the socket buffer takes
  ExpectThatItStillServes();
  EXPECT_TRUE(sleeper.DrainNotifications());
}

TEST_F(ControlTest, AClientThatNeverReadsItsAnswersIsDropped) {
  Serve();
  const ControlClient client = Connect();
  const std::string request =
      absl::StrCat(R"({"op": "x", "padding": ")", std::string(60'000, 'p'), "\"}\n");
  for (int i = 0; i < 100; ++i) Send(client, request);
  EXPECT_TRUE(IsDropped(client));
  ExpectThatItStillServes();
}

TEST_F(ControlTest, GarbageDropsTheClientOnly) {
  Serve();
  for (const std::string& text :
       {std::string("nonsense\n"), std::string("\n"), std::string("[1]\n"),
        std::string("\xff\xfe\n"), std::string("{\"op\": \n"), std::string("\0\0\0\n", 4),
        std::string("{\"op\": 5}\n"), std::string("{\"op\": null}\n"),
        std::string("{\"op\": {\"op\": \"watch\"}}\n"), std::string(100'000, '[') + "\n"}) {
    const ControlClient client = Connect();
    Send(client, text);
    EXPECT_TRUE(IsDropped(client)) << text.substr(0, 40);
  }
  EXPECT_EQ(handled_, 0);
  ExpectThatItStillServes();
}

TEST_F(ControlTest, AnEndlessRequestDropsTheClient) {
  Serve();
  const ControlClient client = Connect();
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) Send(client, megabyte);
  EXPECT_TRUE(IsDropped(client));
  ExpectThatItStillServes();
}

TEST_F(ControlTest, APartialRequestDoesNotBlockOthersAndIsServedWhenComplete) {
  Serve();
  const ControlClient slow = Connect();
  Send(slow, R"({"op": )");
  ExpectThatItStillServes();
  EXPECT_EQ(handled_, 1);
  Send(slow, "\"late\"}\n");
  EXPECT_TRUE(base::Eventually([this] { return handled_ == 2; }));
  {
    const ControlClient gone = Connect();
    Send(gone, R"({"op": "never)");
  }
  ExpectThatItStillServes();
  EXPECT_EQ(handled_, 3);
}

TEST_F(ControlTest, ALargeRequestArrivesWhole) {
  Serve();
  const std::string text(5 << 20, 't');
  ControlClient client = Connect();
  Send(client, Json{{"op", "x"}, {"text", text}}.dump() + "\n");
  EXPECT_TRUE(base::Eventually([this] { return handled_ == 1; }));
}

TEST_F(ControlTest, WorksInAFolderWithAVeryLongName) {
  const std::string directory = home_ + "/" + std::string(200, 'd') + "/" + std::string(200, 'e');
  ASSERT_TRUE(base::MakeDirectories(directory).ok());
  Serve(directory);
  ExpectThatItStillServes();
}

TEST_F(ControlTest, ServesAHundredClientsAtOnce) {
  Serve();
  std::vector<ControlClient> watchers;
  for (int i = 0; i < 100; ++i) {
    watchers.push_back(Connect());
    ASSERT_TRUE(watchers.back().Call({{"op", "watch"}}, kTimeout).ok()) << i;
  }
  ExpectThatItStillServes();
  notify_ = 1;
  for (const ControlClient& watcher : watchers) {
    pollfd waiting{.fd = watcher.fd(), .events = POLLIN};
    EXPECT_EQ(::poll(&waiting, 1, 30'000), 1);
  }
}

TEST_F(ControlTest, IdleConnectionsDoNotLockOthersOut) {
  Serve();
  std::vector<ControlClient> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(Connect());
  ExpectThatItStillServes();
}

// A stopped supervisor (SIGSTOP, a debugger): the socket exists, but no process reads from it.
TEST_F(ControlTest, ASupervisorThatDoesNotRespondIsDeadlineExceeded) {
  loop_ = *process::EventLoop::Create();
  auto server = ControlServer::Listen(home_, *loop_, [](const Json&) -> Json { return {}; });
  ASSERT_TRUE(server.ok());
  directory_ = home_;
  ControlClient client = Connect();
  EXPECT_EQ(client.Call({{"op", "x"}}, absl::Milliseconds(50)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  const Json large = {{"op", "x"}, {"text", std::string(4 << 20, 't')}};
  EXPECT_EQ(client.Call(large, absl::Milliseconds(50)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ControlTest, ASocketThatADeadSupervisorLeftIsReplaced) {
  ASSERT_TRUE(base::WriteFileAtomically(home_ + "/control.sock", "").ok());
  Serve();
  ExpectThatItStillServes();
}

}  // namespace
}  // namespace muster::supervise
