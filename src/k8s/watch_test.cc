#include "k8s/watch.h"

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"
#include "k8s/testing/api_server.h"

namespace muster::k8s {
namespace {

using net::Exchange;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string EventLine(const std::string& type, const std::string& name, int version) {
  Json pod = MakePod(name);
  pod["metadata"]["resourceVersion"] = absl::StrCat(version);
  return absl::StrCat(Json{{"type", type}, {"object", pod}}.dump(), "\n");
}

class WatchTest : public testing::Test {
 protected:
  WatchTest() {
    options_.first_delay = absl::Milliseconds(1);
    options_.stop = source_.get_token();
  }

  // Serves watch connection `i`, counted from 0.
  void Answer(std::function<void(int, Exchange&)> answer) {
    server_.Intercept([this, answer = std::move(answer)](Exchange& exchange) {
      answer(connections_++, exchange);
      return true;
    });
  }
  // Watches until the handler has received `events` events, or the watch returns.
  absl::Status Run(size_t events) {
    return Watch(*client_, kPods, options_, [&, events](WatchEvent event) {
      seen_.push_back(absl::StrCat(static_cast<int>(event.type), NameOf(event.object)));
      if (seen_.size() == events) source_.request_stop();
      return absl::OkStatus();
    });
  }

  ApiServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient();
  std::atomic<int> connections_ = 0;
  std::stop_source source_;
  WatchOptions options_;
  std::vector<std::string> seen_;
};

TEST_F(WatchTest, ReconnectsAfterTheLastEvent) {
  options_.resource_version = "5";
  options_.selection = {.ns = "b", .labels = "x=y"};
  Answer([](int i, Exchange& exchange) {
    BeginStream(exchange);
    if (i == 0) {
      const std::string line = EventLine("ADDED", "a", 6);
      SendChunk(exchange, line.substr(0, 10));
      SendChunk(exchange, line.substr(10) + EventLine("BOOKMARK", "", 8));
      SendChunk(exchange, EventLine("ADDED", "lost", 9).substr(0, 20));  // in the middle of a line
    } else {
      SendChunk(exchange, EventLine("DELETED", "a", 9));
      exchange.Stall();
    }
    exchange.Cut();
  });
  EXPECT_TRUE(absl::IsCancelled(Run(3)));
  EXPECT_THAT(seen_, ElementsAre("0a", "3", "2a"));
  ASSERT_THAT(server_.requests(), SizeIs(2));
  EXPECT_THAT(server_.requests()[0],
              HasSubstr("/namespaces/b/pods?labelSelector=x%3Dy&watch=true"));
  EXPECT_THAT(server_.requests()[0], HasSubstr("resourceVersion=5&timeoutSeconds=300"));
  EXPECT_THAT(server_.requests()[1], HasSubstr("resourceVersion=8&"));
}

TEST_F(WatchTest, TooOldBeforeItBegins) {
  server_.Forget();
  options_.resource_version = "1";
  const absl::Status status = Run(1);
  EXPECT_TRUE(IsGone(status)) << status;
}

TEST_F(WatchTest, TooOldInTheMiddle) {
  Answer([](int, Exchange& exchange) {
    BeginStream(exchange);
    SendChunk(exchange, EventLine("ADDED", "a", 6));
    SendChunk(exchange,
              R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired",)"
              R"("message":"too old resource version"}})"
              "\n");
    exchange.Stall();
  });
  const absl::Status status = Run(2);
  EXPECT_TRUE(IsGone(status)) << status;
  EXPECT_THAT(seen_, SizeIs(1));
}

TEST_F(WatchTest, ReconnectsToASilentServer) {
  options_.idle_timeout = absl::Milliseconds(200);
  Answer([](int i, Exchange& exchange) {
    BeginStream(exchange);
    if (i == 1) SendChunk(exchange, EventLine("ADDED", "a", 6));
    exchange.Stall();
  });
  EXPECT_TRUE(absl::IsCancelled(Run(1)));
  EXPECT_EQ(connections_, 2);
}

TEST_F(WatchTest, GivesUpOnAServerThatDoesNotComeBack) {
  Answer([](int i, Exchange& exchange) {
    if (i % 2 == 0) return exchange.Reply(503, "");
    BeginStream(exchange);
    SendChunk(exchange, "");  // ends immediately
  });
  const absl::Status status = Run(1);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(connections_, options_.tries);
}

TEST_F(WatchTest, ErrorsAreNotRetried) {
  Answer([](int, Exchange& exchange) {
    Refuse(exchange, 403, "Forbidden", "User \"ada\" cannot watch resource \"pods\"");
  });
  const absl::Status status = Run(1);
  EXPECT_TRUE(IsForbidden(status));
  EXPECT_THAT(status.message(), HasSubstr("verbs: [\"watch\"]"));
  EXPECT_EQ(connections_, 1);
}

TEST_F(WatchTest, RejectsMalformedEvents) {
  for (const char* line : {"<html>\n", "{\"type\":\"ADDED\"}\n", "{\"type\":5,\"object\":{}}\n",
                           "{\"type\":\"NEW\",\"object\":{\"metadata\":{}}}\n", "[]\n"}) {
    Answer([line](int, Exchange& exchange) {
      BeginStream(exchange);
      SendChunk(exchange, line);
      exchange.Stall();
    });
    const absl::Status status = Run(1);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("sent an invalid event"));
  }
}

TEST_F(WatchTest, ReceivesLargeObjects) {
  Json pod = MakePod("large");
  pod["metadata"]["resourceVersion"] = "6";
  pod["data"] = std::string(3 << 20, 'x');
  const std::string line = Json{{"type", "ADDED"}, {"object", pod}}.dump() + "\n";
  Answer([line](int, Exchange& exchange) {
    BeginStream(exchange);
    for (size_t at = 0; at < line.size(); at += 100'000) {
      SendChunk(exchange, absl::string_view(line).substr(at, 100'000));
    }
    exchange.Stall();
  });
  EXPECT_TRUE(absl::IsCancelled(Run(1)));
  EXPECT_THAT(seen_, ElementsAre("0large"));
}

TEST_F(WatchTest, LimitsTheSizeOfAnEvent) {
  Answer([](int, Exchange& exchange) {
    BeginStream(exchange);
    const std::string piece(1 << 20, 'x');
    for (int i = 0; i < 17; ++i) SendChunk(exchange, piece);
    exchange.Stall();
  });
  const absl::Status status = Run(1);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(connections_, 1);
}

TEST_F(WatchTest, TheHandlerMayEndTheWatch) {
  server_.Put(kPods, MakePod("a"));
  const absl::Status status = Watch(*client_, kPods, options_,
                                    [](const WatchEvent&) { return absl::AbortedError("mine"); });
  EXPECT_EQ(status, absl::AbortedError("mine"));
}

}  // namespace
}  // namespace muster::k8s
