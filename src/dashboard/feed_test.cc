#include "dashboard/feed.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "history/history.h"
#include "jobs/testing.h"

namespace muster::dashboard {
namespace {

using testing::HasSubstr;

class FeedTest : public testing::Test {
 protected:
  FeedTest() {
    auto history = history::History::Open(home_);
    EXPECT_TRUE(history.ok()) << history.status();
    history_ = *std::move(history);
  }

  // Adds a job, or changes its state.
  void Write(const std::string& id, job::JobState state) {
    job::StateChange change;
    change.job = {.id = id,
                  .name = "x",
                  .platform = "local",
                  .state = state,
                  .created = absl::FromUnixSeconds(1),
                  .directory = base::JoinPath(home_, id)};
    change.tasks = {{.id = {"worker", 0}, .state = job::TaskState::kRunning}};
    ASSERT_TRUE(history_->Apply(change).ok());
  }

  // Returns the first update for which `wanted` holds.
  static FeedUpdate Await(Feed::Viewer& viewer,
                          const std::function<bool(const FeedUpdate&)>& wanted) {
    FeedUpdate update;
    const bool came = base::Eventually([&] {
      update = viewer.Next(absl::Milliseconds(100));
      return wanted(update);
    });
    EXPECT_TRUE(came);
    return update;
  }
  static bool Mentions(const FeedUpdate& update, absl::string_view text) {
    return std::any_of(update.changed.begin(), update.changed.end(),
                       [text](const std::string& one) { return absl::StrContains(one, text); });
  }

  const base::TempDir temp_;
  const std::string home_ = temp_.path();
  std::unique_ptr<history::History> history_;
  ServicePool services_{[this] {
    jobs::OwnedService service;
    service.platforms = std::make_unique<platform::Registry>(
        std::vector<platform::Registration>{
            {.traits = {.name = "local", .title = "this machine", .runs_here = true},
             .make =
                 [](const platform::Traits& traits, const platform::Environment&) {
                   return std::make_unique<jobs::FakeSupervised>(traits);
                 }}},
        platform::Environment());
    service.jobs =
        std::make_unique<jobs::Service>(jobs::ServiceOptions{.home = home_}, *service.platforms);
    return service;
  }};
};

TEST_F(FeedTest, AViewerGetsUnfinishedJobsThenChanges) {
  Write("a-1", job::JobState::kRunning);
  Write("old-1", job::JobState::kSucceeded);
  Feed feed(services_, absl::Milliseconds(5));
  Feed::Viewer viewer(feed, "");
  const FeedUpdate first = Await(viewer, [](auto& update) { return !update.changed.empty(); });
  ASSERT_EQ(first.changed.size(), 1U);
  EXPECT_THAT(first.changed[0], HasSubstr("\"id\":\"a-1\""));
  EXPECT_TRUE(first.details.empty());

  Write("b-2", job::JobState::kRunning);
  Await(viewer, [](auto& update) { return Mentions(update, "\"id\":\"b-2\""); });
  Write("a-1", job::JobState::kSucceeded);
  Await(viewer, [](auto& update) { return Mentions(update, "\"state\":\"Succeeded\""); });
  ASSERT_TRUE(history_->DeleteJob("a-1").ok());
  const FeedUpdate gone = Await(viewer, [](auto& update) { return !update.removed.empty(); });
  EXPECT_THAT(gone.removed, testing::ElementsAre("a-1"));
}

TEST_F(FeedTest, AFinishedJobThatIsAddedIsNews) {
  Write("a-1", job::JobState::kRunning);
  Feed feed(services_, absl::Milliseconds(5));
  Feed::Viewer viewer(feed, "");
  Await(viewer, [](auto& update) { return !update.changed.empty(); });
  Write("quick-1", job::JobState::kFailed);
  Await(viewer, [](auto& update) { return Mentions(update, "quick-1"); });
}

TEST_F(FeedTest, AWatchedJobHasDetailsAndHintsOfItsFiles) {
  Write("a-1", job::JobState::kRunning);
  ASSERT_TRUE(base::MakeDirectories(base::JoinPath(home_, "a-1/logs")).ok());
  Feed feed(services_, absl::Milliseconds(5));
  Feed::Viewer viewer(feed, "a-1");
  const FeedUpdate first = Await(viewer, [](auto& update) { return !update.details.empty(); });
  EXPECT_THAT(first.details, HasSubstr("\"task\":\"worker:0\""));
  const std::string log = base::JoinPath(home_, "a-1/logs/worker-0.log");
  ASSERT_TRUE(base::ReplaceFile(log, "line\n").ok());
  const FeedUpdate grown = Await(viewer, [](auto& update) { return update.log_grew; });
  EXPECT_FALSE(grown.metrics_grew);
  feed.Touch("a-1");  // without a change there is no news
  EXPECT_FALSE(viewer.Next(absl::Milliseconds(50)).log_grew);
}

TEST_F(FeedTest, ManyViewersSeeTheLastStateAndEndTogether) {
  Write("a-1", job::JobState::kRunning);
  Feed feed(services_, absl::Milliseconds(2));
  std::vector<std::thread> viewers;
  std::atomic<int> running = 0, succeeded = 0;
  for (int i = 0; i < 20; ++i) {
    viewers.emplace_back([&, i] {
      Feed::Viewer viewer(feed, i % 2 == 0 ? "a-1" : "");
      for (;;) {
        const FeedUpdate update = viewer.Next(absl::Seconds(60));
        if (Mentions(update, "\"state\":\"Running\"")) ++running;
        if (Mentions(update, "\"state\":\"Succeeded\"")) ++succeeded;
        if (update.ended) return;
      }
    });
  }
  ASSERT_TRUE(base::Eventually([&] { return running >= 20; }));
  Write("a-1", job::JobState::kSucceeded);
  EXPECT_TRUE(base::Eventually([&] { return succeeded >= 20; }));
  feed.Stop();
  for (std::thread& viewer : viewers) viewer.join();
}

}  // namespace
}  // namespace muster::dashboard
