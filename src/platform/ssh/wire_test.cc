#include "platform/ssh/wire.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::ssh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Text(const Message& message) {
  return absl::StrCat(message.head["op"].get<std::string>(), ":", message.body);
}

TEST(DecoderTest, DecodesMessagesSplitAnywhere) {
  const std::string stream =
      absl::StrCat("Welcome!\nmuster-agent", kPreface,
                   Encode({{"op", "a"}}, std::string("x\0y", 3)), Encode({{"op", "b"}}));
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    Decoder decoder(kPreface);
    std::vector<std::string> seen;
    for (size_t at = 0; at < stream.size(); at += piece) {
      decoder.Add(absl::string_view(stream).substr(at, piece));
      for (auto message = decoder.Next();; message = decoder.Next()) {
        if (!message.ok()) {
          ASSERT_TRUE(absl::IsNotFound(message.status())) << message.status();
          break;
        }
        seen.push_back(Text(*message));
      }
    }
    EXPECT_THAT(seen, ElementsAre(std::string("a:x\0y", 5), "b:"));
  }
}

TEST(DecoderTest, InvalidFramesAreDataLoss) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\x7fxxxx"), std::string("\x04\0\0\0abcd", 8),
        std::string("\x04\0\0\0[1]\0", 8), std::string("\x05\0\0\0\"{}\"\0", 9),
        std::string("\0\0\0\0", 4)}) {
    Decoder decoder;
    decoder.Add(bytes);
    EXPECT_TRUE(absl::IsDataLoss(decoder.Next().status())) << absl::CEscape(bytes);
  }
}

TEST(DecoderTest, EndlessShellOutputIsDataLoss) {
  Decoder decoder(kPreface);
  decoder.Add(std::string(2 << 20, 'x'));
  EXPECT_TRUE(absl::IsDataLoss(decoder.Next().status()));
}

// Two peers with an outbox each, over a connection that can be cut.
class ReliableOutboxTest : public testing::Test {
 protected:
  void Connect() {
    std::array<int, 2> fds;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    ours_ = Open(fds[0], us_, at_us_);
    theirs_ = Open(fds[1], them_, at_them_);
    us_.Attach(ours_.get(), them_.seen());
    them_.Attach(theirs_.get(), us_.seen());
  }

  void Cut() {
    us_.Detach();
    them_.Detach();
    ours_.reset();
    theirs_.reset();
  }

  void Run() {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(loop_->Wait(absl::Milliseconds(1)).ok());
      us_.Acknowledge();
      them_.Acknowledge();
    }
  }

  std::unique_ptr<Channel> Open(int fd, ReliableOutbox& ledger, std::vector<int>& taken) {
    auto channel =
        Channel::Open(*loop_, base::UniqueFd(fd), base::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)),
                      {.received =
                           [&](const Message& message) {
                             if (ledger.Take(message.head) && message.head.contains("value")) {
                               taken.push_back(message.head["value"]);
                             }
                           },
                       .closed = [] {}});
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *std::move(channel);
  }

  std::unique_ptr<process::EventLoop> loop_ = *process::EventLoop::Create();
  ReliableOutbox us_, them_;
  std::unique_ptr<Channel> ours_, theirs_;
  std::vector<int> at_us_, at_them_;
};

TEST_F(ReliableOutboxTest, DeliversOnceAndInOrderAcrossLostConnections) {
  us_.Send({{"value", 1}});  // before any connection
  Connect();
  us_.Send({{"value", 2}});
  them_.Send({{"value", 10}});
  Run();
  EXPECT_THAT(at_them_, ElementsAre(1, 2));
  EXPECT_TRUE(us_.all_acknowledged());
  us_.Send({{"value", 3}});
  Cut();  // 3 may or may not have been sent
  us_.Send({{"value", 4}});
  them_.Send({{"value", 11}});
  EXPECT_FALSE(us_.all_acknowledged());
  Connect();
  Run();
  EXPECT_THAT(at_them_, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(at_us_, ElementsAre(10, 11));
  EXPECT_TRUE(us_.all_acknowledged());
  EXPECT_TRUE(them_.all_acknowledged());
}

TEST_F(ReliableOutboxTest, AnUnacknowledgedMessageIsNotDeliveredTwice) {
  Connect();
  us_.Send({{"value", 1}});
  ASSERT_TRUE(loop_->Wait(absl::Milliseconds(10)).ok());
  EXPECT_THAT(at_them_, ElementsAre(1));
  Cut();
  EXPECT_FALSE(us_.all_acknowledged());
  Connect();
  Run();
  EXPECT_THAT(at_them_, ElementsAre(1));
  EXPECT_TRUE(us_.all_acknowledged());
  EXPECT_THAT(at_us_, IsEmpty());
}

TEST(ChannelTest, LargeMessagesPassThroughASmallPipeAndTheEndIsReported) {
  const auto loop = *process::EventLoop::Create();
  std::array<int, 2> fds;
  ASSERT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<size_t> sizes;
  bool closed = false;
  auto reader = *Channel::Open(
      *loop, base::UniqueFd(fds[0]), base::UniqueFd(::dup(null.get())),
      {.received = [&](const Message& message) { sizes.push_back(message.body.size()); },
       .closed = [&] { closed = true; }});
  std::array<int, 2> unused;
  ASSERT_EQ(::pipe2(unused.data(), O_CLOEXEC), 0);
  auto writer = *Channel::Open(*loop, base::UniqueFd(unused[0]), base::UniqueFd(fds[1]),
                               {.received = [](const Message&) {}, .closed = [] {}});
  for (const size_t size : {size_t{3} << 20, size_t{0}, size_t{1} << 20}) {
    writer->Send({{"op", "x"}}, std::string(size, 'b'));
  }
  EXPECT_GT(writer->unsent(), 0U);
  while (sizes.size() < 3) ASSERT_TRUE(loop->Wait(absl::Seconds(10)).ok());
  EXPECT_THAT(sizes, ElementsAre(3 << 20, 0, 1 << 20));
  EXPECT_EQ(writer->unsent(), 0U);
  writer.reset();
  while (!closed) ASSERT_TRUE(loop->Wait(absl::Seconds(10)).ok());
  ::close(unused[1]);
}

}  // namespace
}  // namespace muster::ssh
