#include "k8s/informer.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"
#include "k8s/testing/api_server.h"

namespace muster::k8s {
namespace {

using net::Exchange;
using testing::HasSubstr;
using testing::SizeIs;

class InformerTest : public testing::Test {
 protected:
  InformerTest() {
    options_.kind = kPods;
    options_.first_delay = absl::Milliseconds(1);
    options_.watch.first_delay = absl::Milliseconds(1);
    options_.on_error = [this](const absl::Status& status) {
      Record(absl::StrCat("error ", status.message()));
    };
  }

  void Start() {
    informer_ = std::make_unique<Informer>(
        *client_, options_,
        InformerHandler{
            .added = [this](const Object& object) { Record("added " + NameOf(*object)); },
            .updated =
                [this](const Object& before, const Object& after) {
                  EXPECT_NE(ResourceVersionOf(*before), ResourceVersionOf(*after));
                  Record("updated " + NameOf(*after));
                },
            .deleted = [this](const Object& last) { Record("deleted " + NameOf(*last)); }});
    informer_->Start();
  }
  void Record(const std::string& text) {
    absl::MutexLock lock(&mutex_);
    received_.push_back(text);
  }
  // Waits until the handler has been called `count` times. Returns false after a timeout.
  bool Received(const std::string& text, int count = 1) {
    const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return std::count(received_.begin(), received_.end(), text) >= count;
    };
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(30));
  }
  std::vector<std::string> received() {
    absl::MutexLock lock(&mutex_);
    return received_;
  }

  ApiServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient();
  absl::Mutex mutex_;
  std::vector<std::string> received_ ABSL_GUARDED_BY(mutex_);
  InformerOptions options_;
  std::unique_ptr<Informer> informer_;
};

TEST_F(InformerTest, FollowsChanges) {
  options_.selection.labels = "app=x";
  options_.transform = [](Json& object) { object["metadata"].erase("managedFields"); };
  options_.index = [](const Json& object) { return LabelOf(object, "job"); };
  Json pod = MakePod("a");
  pod["metadata"]["managedFields"] = "much";
  pod["metadata"]["labels"] = {{"job", "j"}};
  server_.Put(kPods, pod);
  Start();
  ASSERT_TRUE(informer_->WaitUntilSynced(absl::Seconds(30)));
  EXPECT_TRUE(Received("added a"));
  EXPECT_THAT(informer_->cache().Indexed("j"), SizeIs(1));
  EXPECT_EQ(Find(*informer_->cache().Get({"default", "a"}), "/metadata/managedFields"), nullptr);
  pod["metadata"]["labels"] = {{"job", "k"}};
  server_.Put(kPods, pod);
  EXPECT_TRUE(Received("updated a"));
  EXPECT_THAT(informer_->cache().Indexed("j"), SizeIs(0));
  EXPECT_THAT(informer_->cache().Indexed("k"), SizeIs(1));
  EXPECT_EQ(Find(*informer_->cache().Get({"default", "a"}), "/metadata/managedFields"), nullptr);
  server_.Put(kPods, MakePod("b"));
  EXPECT_TRUE(Received("added b"));
  EXPECT_THAT(informer_->cache().All(), SizeIs(2));
  server_.Remove(kPods, {"default", "a"});
  EXPECT_TRUE(Received("deleted a"));
  EXPECT_EQ(informer_->cache().Get({"default", "a"}), nullptr);
  EXPECT_THAT(informer_->cache().Indexed("k"), SizeIs(0));
  EXPECT_EQ(server_.Count("labelSelector=app%3Dx"), static_cast<int>(server_.requests().size()));
}

TEST_F(InformerTest, NoEventIsLostOrRepeatedWhenTheWatchIsCut) {
  server_.Put(kPods, MakePod("a"));
  Start();
  ASSERT_TRUE(server_.WaitForWatches(1));
  for (int i = 0; i < 5; ++i) {
    server_.CutWatches();
    server_.Put(kPods, MakePod(absl::StrCat("new", i)));
    EXPECT_TRUE(Received(absl::StrCat("added new", i)));
  }
  informer_->Stop();
  EXPECT_THAT(received(), SizeIs(6));
  EXPECT_EQ(server_.Count("limit=500"), 1);  // listed once
}

TEST_F(InformerTest, ListsAgainAfterAGap) {
  for (const char* name : {"kept", "changed", "removed", "replaced"}) {
    server_.Put(kPods, MakePod(name));
  }
  Start();
  ASSERT_TRUE(server_.WaitForWatches(1));
  // Watches fail until all changes have been made and their history dropped.
  absl::Mutex gate;
  bool open = false;
  server_.Intercept([&](Exchange& exchange) {
    absl::MutexLock lock(&gate);
    if (open || exchange.method() != "GET") return false;
    exchange.Reply(503);
    return true;
  });
  server_.CutWatches();
  server_.Put(kPods, MakePod("changed"));
  server_.Put(kPods, MakePod("new"));
  server_.Remove(kPods, {"default", "removed"});
  server_.Remove(kPods, {"default", "replaced"});
  server_.Put(kPods, MakePod("replaced"));
  server_.Forget();
  {
    absl::MutexLock lock(&gate);
    open = true;
  }
  EXPECT_TRUE(Received("updated changed"));
  EXPECT_TRUE(Received("added new"));
  EXPECT_TRUE(Received("deleted removed"));
  EXPECT_TRUE(Received("deleted replaced"));
  EXPECT_TRUE(Received("added replaced", 2));
  ASSERT_TRUE(server_.WaitForWatches(1));
  informer_->Stop();
  const auto all = received();
  EXPECT_EQ(std::count(all.begin(), all.end(), "added kept"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "updated kept"), 0);
  EXPECT_THAT(informer_->cache().All(), SizeIs(4));
}

TEST_F(InformerTest, ReportsErrorsAndRetries) {
  server_.Put(kPods, MakePod("a"));
  // Owned by the server: a request may still be in flight when the informer stops.
  const auto count = std::make_shared<std::atomic<int>>(0);
  server_.Intercept([count](Exchange& exchange) {
    if ((*count)++ >= 3) return false;
    Refuse(exchange, 403, "Forbidden", "User \"ada\" cannot list resource \"pods\"");
    return true;
  });
  Start();
  EXPECT_TRUE(Received("added a"));
  informer_->Stop();
  EXPECT_THAT(received()[0], HasSubstr("error cannot list pods"));
  EXPECT_THAT(received()[0], HasSubstr("ClusterRole"));
}

TEST_F(InformerTest, StopsInEveryState) {
  Start();
  ASSERT_TRUE(server_.WaitForWatches(1));
  const absl::Time begin = absl::Now();
  informer_->Stop();  // during a watch
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  informer_->Stop();
  server_.Intercept([](Exchange& exchange) {
    exchange.Stall();
    return true;
  });
  Start();
  informer_.reset();  // during a list
  server_.Intercept([](Exchange& exchange) {
    exchange.Reply(403);
    return true;
  });
  options_.first_delay = absl::Hours(1);
  options_.max_delay = absl::Hours(1);
  Start();
  EXPECT_FALSE(informer_->WaitUntilSynced(absl::Milliseconds(50)));
  informer_.reset();  // during a backoff
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

}  // namespace
}  // namespace muster::k8s
