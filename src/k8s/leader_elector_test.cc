#include "k8s/leader_elector.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"
#include "k8s/testing/api_server.h"

namespace muster::k8s {
namespace {

using net::Exchange;
using testing::HasSubstr;

const ObjectKey kKey{"system", "operator"};

// Steps of two electors that share a fake clock.
class LeaderElectorTest : public testing::Test {
 protected:
  ElectionOptions Options(const std::string& identity) {
    return {.lease = kKey, .identity = identity, .clock = &clock_};
  }
  Json Lease() { return server_.Get(kLeases, kKey); }

  base::FakeClock clock_;
  ApiServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient();
  LeaderElector a_{*client_, Options("a")};
  LeaderElector b_{*client_, Options("b")};
};

TEST_F(LeaderElectorTest, TheFirstLeadsAndRenews) {
  EXPECT_TRUE(*a_.Step());
  EXPECT_FALSE(*b_.Step());
  EXPECT_EQ(TextAt(Lease(), "/spec/holderIdentity"), "a");
  EXPECT_EQ(Lease()["spec"]["leaseDurationSeconds"], 15);
  EXPECT_EQ(Lease()["spec"]["leaseTransitions"], 0);
  const std::string acquired = TextAt(Lease(), "/spec/acquireTime");
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(absl::Seconds(9));
    EXPECT_TRUE(*a_.Step());
    EXPECT_FALSE(*b_.Step());
  }
  EXPECT_EQ(TextAt(Lease(), "/spec/acquireTime"), acquired);
  EXPECT_NE(TextAt(Lease(), "/spec/renewTime"), acquired);
  EXPECT_EQ(b_.leader(), "a");
}

TEST_F(LeaderElectorTest, AnotherTakesOverWhenTheLeaseExpires) {
  EXPECT_TRUE(*a_.Step());
  EXPECT_FALSE(*b_.Step());
  clock_.Advance(absl::Seconds(11));
  EXPECT_FALSE(a_.leading());  // it steps down before …
  EXPECT_FALSE(*b_.Step());    // … another may lead
  clock_.Advance(absl::Seconds(4));
  EXPECT_TRUE(*b_.Step());
  EXPECT_EQ(Lease()["spec"]["leaseTransitions"], 1);
  EXPECT_FALSE(*a_.Step());
  EXPECT_EQ(a_.leader(), "b");
}

TEST_F(LeaderElectorTest, ALeaseCountsFromItsObservation) {
  // The holder's clock may be off by hours.
  server_.Put(kLeases, {{"metadata", {{"name", kKey.name}, {"namespace", kKey.ns}}},
                        {"spec",
                         {{"holderIdentity", "c"},
                          {"leaseDurationSeconds", 30},
                          {"renewTime", "1999-01-01T00:00:00.000000Z"}}}});
  EXPECT_FALSE(*a_.Step());
  clock_.Advance(absl::Seconds(29));
  EXPECT_FALSE(*a_.Step());
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(*a_.Step());
}

TEST_F(LeaderElectorTest, TheResourceVersionDecidesBetweenTwoCandidates) {
  EXPECT_TRUE(*a_.Step());
  clock_.Advance(absl::Seconds(1));
  std::atomic<bool> raced = false;
  server_.Intercept([&](Exchange& exchange) {
    if (exchange.method() != "PUT" || raced.exchange(true)) return false;
    Json lease = server_.Get(kLeases, kKey);
    lease["spec"]["holderIdentity"] = "b";
    server_.Put(kLeases, lease);
    return false;
  });
  (void)a_.Step();  // a conflict
  EXPECT_FALSE(*a_.Step());
  EXPECT_FALSE(a_.leading());
  EXPECT_EQ(a_.leader(), "b");
}

TEST_F(LeaderElectorTest, AnUnavailableServerDoesNotEndTheLeadershipImmediately) {
  EXPECT_TRUE(*a_.Step());
  server_.Intercept([](Exchange& exchange) {
    exchange.Reply(503);
    return true;
  });
  clock_.Advance(absl::Seconds(5));
  EXPECT_FALSE(a_.Step().ok());
  EXPECT_TRUE(a_.leading());
  clock_.Advance(absl::Seconds(5));
  EXPECT_FALSE(a_.leading());
}

TEST_F(LeaderElectorTest, AReleasedLeaseIsAcquiredImmediately) {
  EXPECT_TRUE(*a_.Step());
  EXPECT_FALSE(*b_.Step());
  a_.Release();
  EXPECT_FALSE(a_.leading());
  EXPECT_TRUE(*b_.Step());
  a_.Release();  // no longer its own
  EXPECT_EQ(TextAt(Lease(), "/spec/holderIdentity"), "b");
}

// With threads and the real clock.
class ElectionTest : public testing::Test {
 protected:
  struct Candidate {
    Candidate(ApiServer& server, const std::string& identity)
        : client(server.NewClient()),
          elector(*client, {.lease = kKey,
                            .identity = identity,
                            .lease_duration = absl::Seconds(3),
                            .renew_deadline = absl::Seconds(2),
                            .retry_period = absl::Milliseconds(50)}),
          thread([this](const std::stop_token& stop) {
            result = elector.Run(
                stop, [this] { elected.Notify(); }, [this] { return idle.load(); });
            ended.Notify();
          }) {}

    // Waits for Run() and returns its result.
    absl::Status Result() {
      if (!ended.WaitForNotificationWithTimeout(absl::Seconds(60))) {
        return absl::DeadlineExceededError("goes on");
      }
      if (thread.joinable()) thread.join();
      return result;
    }

    std::unique_ptr<Client> client;
    LeaderElector elector;
    absl::Status result;
    std::atomic<bool> idle = true;
    absl::Notification elected;
    absl::Notification ended;
    std::jthread thread;
  };

  ApiServer server_;
};

TEST_F(ElectionTest, AnotherLeadsWhenTheFirstCannotRenew) {
  Candidate a(server_, "a");
  ASSERT_TRUE(a.elected.WaitForNotificationWithTimeout(absl::Seconds(30)));
  // From now on its renewals fail.
  server_.Intercept([](Exchange& exchange) {
    if (exchange.method() != "PUT" ||
        Json::parse(exchange.Body())["spec"]["holderIdentity"] != "a") {
      return false;
    }
    exchange.Reply(503);
    return true;
  });
  const absl::Status lost = a.Result();
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  EXPECT_THAT(lost.message(), HasSubstr("lost the leader election"));
  server_.Intercept(nullptr);
  Candidate b(server_, "b");
  ASSERT_TRUE(b.elected.WaitForNotificationWithTimeout(absl::Seconds(60)));
  EXPECT_FALSE(a.elector.leading());
  b.thread.request_stop();
  EXPECT_EQ(b.Result(), absl::OkStatus());
}

// The work of two leaders must not overlap.
TEST_F(ElectionTest, KeepsTheLeaseUntilTheWorkHasEnded) {
  Candidate a(server_, "a");
  ASSERT_TRUE(a.elected.WaitForNotificationWithTimeout(absl::Seconds(30)));
  a.idle = false;
  a.thread.request_stop();
  Candidate b(server_, "b");
  // Longer than the lease lasts without a renewal.
  EXPECT_FALSE(b.elected.WaitForNotificationWithTimeout(absl::Seconds(5)));
  EXPECT_TRUE(a.elector.leading());
  EXPECT_FALSE(a.ended.HasBeenNotified());
  a.idle = true;
  ASSERT_TRUE(b.elected.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_EQ(a.Result(), absl::OkStatus());
  b.thread.request_stop();
  EXPECT_EQ(b.Result(), absl::OkStatus());
}

TEST_F(ElectionTest, NeverTwoLeaders) {
  Candidate a(server_, "a");
  ASSERT_TRUE(a.elected.WaitForNotificationWithTimeout(absl::Seconds(30)));
  Candidate b(server_, "b");
  std::atomic<int> both = 0;
  std::jthread observer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      // The order matters: `a` never leads again.
      if (b.elector.leading() && a.elector.leading()) ++both;
    }
  });
  a.thread.request_stop();  // releases the lease
  ASSERT_TRUE(b.elected.WaitForNotificationWithTimeout(absl::Seconds(60)));
  EXPECT_EQ(a.Result(), absl::OkStatus());
  observer.request_stop();
  observer.join();
  EXPECT_EQ(both, 0);
  b.thread.request_stop();
  EXPECT_EQ(b.Result(), absl::OkStatus());
  EXPECT_EQ(TextAt(server_.Get(kLeases, kKey), "/spec/holderIdentity"), "");
}

}  // namespace
}  // namespace muster::k8s
