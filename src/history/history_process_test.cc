// Several processes using one history, and processes killed while they write.
#include <csignal>
#include <random>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "history/test_support.h"

namespace muster::history {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr char kId[] = "a-1";

class HistoryProcessTest : public HistoryTest {
 protected:
  std::string IntegrityOf() {
    auto database = Database::Open(DatabasePath(), absl::Seconds(5));
    if (!database.ok()) return database.status().ToString();
    auto query = (*database)->Prepare("PRAGMA integrity_check");
    if (!query.ok() || !query->Step().ok()) return "unreadable";
    return query->Text(0);
  }

  // Replaces the file as a repair does, but without taking the lock.
  void MoveDatabaseAside() const {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::error_code ignored;
      std::filesystem::rename(DatabasePath() + suffix, DatabasePath() + ".elsewhere" + suffix,
                              ignored);
    }
  }
};

// A pipe between a test and its child.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  bool Send() const { return ::write(ends[1], "x", 1) == 1; }
  bool Receive() const {
    char byte;
    return ::read(ends[0], &byte, 1) == 1;
  }
  int ends[2];
};

TEST_F(HistoryProcessTest, EightWritersLoseNothing) {
  constexpr int kWriters = 8;
  constexpr int kChanges = 50;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    // The file does not exist yet, so they also race to create it.
    writers.push_back(Fork([&] {
      auto history = History::Open(home_);
      if (!history.ok()) return false;
      for (int i = 1; i <= kChanges; ++i) {
        job::StateChange change;
        change.job = MakeJob(kId);
        change.tasks = {MakeTask({"worker", writer}, i)};
        change.events = {MakeEvent(absl::StrCat(writer))};
        if (!(*history)->Apply(change).ok()) return false;
      }
      return true;
    }));
  }
  for (const pid_t writer : writers) EXPECT_TRUE(Succeeded(writer));

  const std::unique_ptr<History> history = OpenHistory();
  const std::vector<job::Event> events = *history->Events(kId);
  ASSERT_THAT(events, SizeIs(kWriters * kChanges));
  std::map<std::string, int> per_writer;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence, static_cast<int64_t>(i) + 1);
    ++per_writer[events[i].message];
  }
  for (const auto& [writer, count] : per_writer) EXPECT_EQ(count, kChanges) << writer;
  const std::vector<job::TaskRecord> tasks = *history->Tasks(kId);
  ASSERT_THAT(tasks, SizeIs(kWriters));
  for (const job::TaskRecord& task : tasks) EXPECT_EQ(task.restarts, kChanges);
  EXPECT_EQ(IntegrityOf(), "ok");
}

// Applies changes forever, writes n into every table at change n, and acknowledges each.
bool WriteForEver(const std::string& home, const Pipe& acknowledged) {
  auto history = History::Open(home);
  if (!history.ok()) return false;
  const auto events = (*history)->Events(kId);
  if (!events.ok()) return false;
  for (int n = static_cast<int>(events->size()) + 1;; ++n) {
    job::StateChange change;
    change.job = MakeJob(kId);
    change.job.reason = absl::StrCat(n);
    change.tasks = {MakeTask({"worker", 0}, n), MakeTask({"worker", 1}, n)};
    change.events = {MakeEvent(absl::StrCat(n))};
    if (!(*history)->Apply(change).ok() || !acknowledged.Send()) return false;
  }
}

TEST_F(HistoryProcessTest, KilledWriterKeepsAcknowledgedChangesAtomic) {
  std::minstd_rand random(7);
  int64_t total = 0;
  for (int round = 0; round < 20; ++round) {
    Pipe acknowledged;
    const pid_t writer = Fork([&] { return WriteForEver(home_, acknowledged); });
    const int wanted = static_cast<int>(random() % 8) + 1;
    for (int i = 0; i < wanted; ++i) ASSERT_TRUE(acknowledged.Receive());
    absl::SleepFor(absl::Microseconds(random() % 4000));
    ASSERT_EQ(::kill(writer, SIGKILL), 0);
    EXPECT_FALSE(Succeeded(writer));

    const std::unique_ptr<History> history = OpenHistory();
    const std::vector<job::Event> events = *history->Events(kId);
    ASSERT_GE(static_cast<int64_t>(events.size()), total + wanted);
    total = static_cast<int64_t>(events.size());
    EXPECT_EQ(events.back().sequence, total);
    EXPECT_EQ(history->GetJob(kId)->reason, absl::StrCat(total));
    const std::vector<job::TaskRecord> tasks = *history->Tasks(kId);
    EXPECT_THAT(tasks, SizeIs(2));
    for (const job::TaskRecord& task : tasks) EXPECT_EQ(task.restarts, total);
  }
  EXPECT_EQ(IntegrityOf(), "ok");
  EXPECT_THAT(notices_, IsEmpty());
}

// Adds a job with all of its tasks, before there is a supervisor.
bool AddJobAsRunDoes(const std::string& home) {
  auto history = History::Open(home);
  return history.ok() && (*history)
                             ->AddJob(MakeJob(kId), {MakeTask({"worker", 0}),
                                                     MakeTask({"chief", 0}), MakeTask({"ps", 0})})
                             .ok();
}

bool FindsJobUnreachable(const std::string& home) {
  auto history = History::Open(home);
  if (!history.ok()) return false;
  const auto job = (*history)->GetJob(kId);
  return job.ok() && job->state == job::JobState::kUnreachable &&
         absl::StrContains(job->reason, "history was damaged");
}

TEST_F(HistoryProcessTest, SupervisorWritesTheWholeJobIntoANewFile) {
  const std::unique_ptr<History> supervisor = OpenHistory();
  ASSERT_TRUE(Succeeded(Fork([&] { return AddJobAsRunDoes(home_); })));
  WriteJobFolder(MakeJob(kId));
  job::StateChange change;
  change.job = MakeJob(kId);
  change.tasks = {MakeTask({"chief", 0}, 1)};
  change.removed = {{"ps", 0}};
  change.events = {MakeEvent("before"), MakeEvent("before")};
  ASSERT_TRUE(supervisor->Apply(change).ok());

  MoveDatabaseAside();
  ASSERT_TRUE(Succeeded(Fork([&] { return FindsJobUnreachable(home_); })));

  change.tasks = {MakeTask({"worker", 0}, 2)};
  change.removed.clear();
  change.events = {MakeEvent("after")};
  ASSERT_TRUE(supervisor->Apply(change).ok());
  const std::unique_ptr<History> reader = OpenHistory();
  EXPECT_EQ(reader->GetJob(kId)->state, job::JobState::kRunning);
  const std::vector<job::TaskRecord> tasks = *reader->Tasks(kId);
  ASSERT_THAT(tasks, SizeIs(2));
  EXPECT_EQ(tasks[0].id, (cluster::TaskId{"worker", 0}));
  EXPECT_EQ(tasks[0].restarts, 2);
  EXPECT_EQ(tasks[1].id, (cluster::TaskId{"chief", 0}));
  EXPECT_EQ(tasks[1].restarts, 1);
  // A reader that had seen two events finds the third by its number.
  const std::vector<job::Event> events = *reader->Events(kId, 2);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].sequence, 3);
}

TEST_F(HistoryProcessTest, RefreshBringsAQuietJobBack) {
  const std::unique_ptr<History> supervisor = OpenHistory();
  WriteJobFolder(MakeJob(kId));
  job::StateChange change;
  change.job = MakeJob(kId);
  change.tasks = {MakeTask({"worker", 0}, 4)};
  ASSERT_TRUE(supervisor->Apply(change).ok());
  MoveDatabaseAside();
  const std::unique_ptr<History> reader = OpenHistory();
  EXPECT_EQ(reader->GetJob(kId)->state, job::JobState::kUnreachable);
  ASSERT_TRUE(supervisor->Refresh().ok());
  EXPECT_EQ(reader->GetJob(kId)->state, job::JobState::kRunning);
  EXPECT_EQ(reader->Tasks(kId)->at(0).restarts, 4);
}

TEST_F(HistoryProcessTest, ReadersFollowTheNewFile) {
  const std::unique_ptr<History> reader = OpenHistory();
  ASSERT_TRUE(reader->AddJob(MakeJob("old-1"), {}).ok());
  MoveDatabaseAside();
  ASSERT_TRUE(Succeeded(Fork([&] {
    auto history = History::Open(home_);
    return history.ok() && (*history)->AddJob(MakeJob("new-1"), {}).ok();
  })));
  ASSERT_THAT(*reader->ListJobs(), SizeIs(1));
  EXPECT_EQ(reader->ListJobs()->front().id, "new-1");
}

// The last connection to a database deletes its -wal by name; after a move, that name belongs to
// another file.
TEST_F(HistoryProcessTest, ClosingAMovedFileLeavesTheNewOneAlone) {
  std::unique_ptr<History> old_history = OpenHistory();
  ASSERT_TRUE(old_history->AddJob(MakeJob("old-1"), {}).ok());
  MoveDatabaseAside();
  Pipe written;
  const pid_t writer = Fork([&] {
    auto history = History::Open(home_);
    if (!history.ok() || !(*history)->AddJob(MakeJob("new-1"), {}).ok()) return false;
    written.Send();
    for (;;) ::pause();
  });
  ASSERT_TRUE(written.Receive());
  old_history.reset();
  EXPECT_TRUE(std::filesystem::exists(DatabasePath() + "-wal"));
  ASSERT_EQ(::kill(writer, SIGKILL), 0);
  EXPECT_FALSE(Succeeded(writer));
  EXPECT_TRUE(OpenHistory()->GetJob("new-1").ok());
}

TEST_F(HistoryProcessTest, OnlyOneProcessRepairs) {
  for (int i = 0; i < 5; ++i) WriteJobFolder(MakeJob(absl::StrCat("j-", i), i));
  ASSERT_TRUE(base::WriteFileAtomically(DatabasePath(), std::string(10'000, 'x')).ok());
  Pipe notices;
  std::vector<pid_t> finders;
  for (int i = 0; i < 8; ++i) {
    finders.push_back(Fork([&] {
      HistoryOptions options;
      options.notice = [&](absl::string_view) { notices.Send(); };
      auto history = History::Open(home_, options);
      if (!history.ok()) return false;
      const auto jobs = (*history)->ListJobs();
      return jobs.ok() && jobs->size() == 5;
    }));
  }
  for (const pid_t finder : finders) EXPECT_TRUE(Succeeded(finder));
  EXPECT_THAT(MovedAside(), SizeIs(1));
  EXPECT_TRUE(notices.Receive());
  ::close(std::exchange(notices.ends[1], -1));
  EXPECT_FALSE(notices.Receive());
}

}  // namespace
}  // namespace muster::history
