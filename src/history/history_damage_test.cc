// A damaged history.db is moved aside, and the jobs are recovered from their folders.
#include <fstream>
#include <random>

#include "gmock/gmock.h"
#include "history/rows.h"
#include "history/test_support.h"

namespace muster::history {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

constexpr int kJobs = 40;
constexpr size_t kPageSize = 4096;

class HistoryDamageTest : public HistoryTest {
 protected:
  HistoryDamageTest() {
    EXPECT_NE(OpenHistory(), nullptr);
    Fill();
    // Closing left everything in the one file.
    EXPECT_FALSE(std::filesystem::exists(DatabasePath() + "-wal"));
    healthy_ = *base::ReadFile(DatabasePath());
  }

  // One transaction, because AddJob() for each job would be slow.
  void Fill() {
    auto database = Database::Open(DatabasePath(), absl::Seconds(1));
    ASSERT_TRUE(database.ok()) << database.status();
    auto transaction = Transaction::Begin(**database);
    ASSERT_TRUE(transaction.ok()) << transaction.status();
    for (int i = 0; i < kJobs; ++i) {
      job::JobRecord job = MakeJob(IdOf(i), i, job::JobState::kSucceeded);
      job.failure = std::string(400, 'f');
      job::JobRecord unfinished = job;
      unfinished.state = job::JobState::kRunning;
      WriteJobFolder(unfinished);
      ASSERT_TRUE(UpsertJob(**database, job).ok());
      ASSERT_TRUE(
          UpsertTasks(**database, job.id, {MakeTask({"worker", 0}), MakeTask({"worker", 1})}).ok());
      const std::vector<job::Event> events(6, MakeEvent(std::string(100, 'e')));
      ASSERT_TRUE(AppendEvents(**database, job.id, events, 0).ok());
    }
    ASSERT_TRUE(transaction->Commit().ok());
    ASSERT_TRUE((*database)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").ok());
    database->reset();
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(DatabasePath() + suffix);
  }

  static std::string IdOf(int i) { return absl::StrCat("mnist-", i); }

  void Damage(const std::string& content) {
    ASSERT_TRUE(base::WriteFileAtomically(DatabasePath(), content).ok());
  }

  // Reads and writes everything, so that no damage stays hidden.
  void UseEverything(History& history) {
    const auto jobs = history.ListJobs();
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    EXPECT_THAT(*jobs, SizeIs(kJobs));
    EXPECT_TRUE(history.ListJobs({.only_active = true}).ok());
    EXPECT_TRUE(history.Resolve("mnist").ok());
    for (int i = 0; i < kJobs; ++i) {
      EXPECT_TRUE(history.GetJob(IdOf(i)).ok());
      EXPECT_TRUE(history.Tasks(IdOf(i)).ok());
      EXPECT_TRUE(history.Events(IdOf(i)).ok());
    }
    job::StateChange change;
    change.job = MakeJob(IdOf(0));
    change.tasks = {MakeTask({"worker", 0}, 9)};
    change.events = {MakeEvent("x")};
    ASSERT_TRUE(history.Apply(change).ok());
    EXPECT_EQ(history.GetJob(IdOf(0))->state, job::JobState::kRunning);
  }

  void ExpectRebuilt() {
    const std::unique_ptr<History> history = OpenHistory();
    const auto jobs = history->ListJobs();
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    ASSERT_THAT(*jobs, SizeIs(kJobs));
    EXPECT_EQ(jobs->front().id, IdOf(kJobs - 1));
    for (const job::JobRecord& job : *jobs) {
      EXPECT_EQ(job.state, job::JobState::kUnreachable);
      EXPECT_EQ(job.reason, "history was damaged; the outcome of this job is unknown");
    }
    ASSERT_THAT(notices_, SizeIs(1));
    EXPECT_THAT(notices_[0], MatchesRegex("history.db was damaged; moved to "
                                          ".*/history.db.damaged-[0-9]{8}T[0-9]{6}Z; "
                                          "40 jobs recovered from their folders"));
    EXPECT_THAT(MovedAside(), SizeIs(1));
    UseEverything(*history);
  }

  std::string healthy_;
};

TEST_F(HistoryDamageTest, Garbage) {
  Damage(std::string(100'000, '\x5a'));
  ExpectRebuilt();
  // The damaged file keeps its content.
  EXPECT_EQ(base::ReadFile(base::JoinPath(home_, MovedAside()[0]))->size(), 100'000u);
}

TEST_F(HistoryDamageTest, Empty) {
  Damage("");
  ExpectRebuilt();
}

TEST_F(HistoryDamageTest, CutInTheHeader) {
  Damage(healthy_.substr(0, 50));
  ExpectRebuilt();
}

TEST_F(HistoryDamageTest, CutInTheMiddle) {
  Damage(healthy_.substr(0, healthy_.size() / 2));
  ExpectRebuilt();
}

TEST_F(HistoryDamageTest, RandomBytesInTheHeader) {
  std::minstd_rand random(11);
  std::string content = healthy_;
  for (size_t i = 0; i < 100; ++i) content[i] = static_cast<char>(random());
  Damage(content);
  ExpectRebuilt();
}

TEST_F(HistoryDamageTest, AnotherProgramsDatabase) {
  Damage("");
  auto database = Database::Open(DatabasePath(), absl::Seconds(1));
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)->Execute("CREATE TABLE photos (a); PRAGMA user_version = 12").ok());
  database->reset();
  ExpectRebuilt();
}

TEST_F(HistoryDamageTest, EveryPageZeroedInTurn) {
  const size_t pages = healthy_.size() / kPageSize;
  ASSERT_GT(pages, 15u);
  for (size_t page = 0; page < pages; ++page) {
    SCOPED_TRACE(page);
    std::string content = healthy_;
    std::fill_n(content.begin() + static_cast<long>(page * kPageSize), kPageSize, '\0');
    Damage(content);
    notices_.clear();
    UseEverything(*OpenHistory());
    EXPECT_THAT(notices_, SizeIs(1));
  }
  EXPECT_THAT(MovedAside(), SizeIs(pages));
}

TEST_F(HistoryDamageTest, RandomBytesAnywhereNeverCrash) {
  std::minstd_rand random(5);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    std::string content = healthy_;
    for (int i = 0; i < 1 << (round % 8); ++i) {
      content[random() % content.size()] = static_cast<char>(random());
    }
    Damage(content);
    absl::StatusOr<std::unique_ptr<History>> history = History::Open(home_);
    if (!history.ok()) continue;  // such as a format number that looks newer
    for (const job::JobRecord& job :
         (*history)->ListJobs().value_or(std::vector<job::JobRecord>())) {
      (*history)->Tasks(job.id).status().IgnoreError();
      (*history)->Events(job.id).status().IgnoreError();
    }
  }
}

TEST_F(HistoryDamageTest, MissingFileIsRebuiltToo) {
  std::filesystem::remove(DatabasePath());
  EXPECT_THAT(*OpenHistory()->ListJobs(), SizeIs(kJobs));
  EXPECT_THAT(notices_,
              ElementsAre("history.db was missing; 40 jobs recovered from their folders"));
  EXPECT_THAT(MovedAside(), IsEmpty());
}

TEST_F(HistoryDamageTest, StrayWalOfALostFileIsNotAppliedToTheNewOne) {
  std::filesystem::remove(DatabasePath());
  ASSERT_TRUE(base::WriteFileAtomically(DatabasePath() + "-wal", std::string(8192, 'w')).ok());
  EXPECT_THAT(*OpenHistory()->ListJobs(), SizeIs(kJobs));
}

TEST_F(HistoryDamageTest, FoundWhileInUse) {
  const std::unique_ptr<History> history = OpenHistory();
  job::StateChange change;
  change.job = MakeJob(IdOf(3));
  change.tasks = {MakeTask({"worker", 1}, 1)};
  ASSERT_TRUE(history->Apply(change).ok());
  // Every page but the first, in place, under the open connection.
  {
    auto database = Database::Open(DatabasePath(), absl::Seconds(1));
    ASSERT_TRUE((*database)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").ok());
  }
  ASSERT_TRUE(Succeeded(Fork([&] {
    std::fstream file(DatabasePath(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kPageSize);
    file << std::string(healthy_.size() - kPageSize, '\0');
    return file.good();
  })));
  change.tasks = {MakeTask({"worker", 0}, 2)};
  const std::unique_ptr<History> finder = OpenHistory();
  EXPECT_THAT(*finder->ListJobs(), SizeIs(kJobs));
  EXPECT_THAT(notices_, SizeIs(1));
  ASSERT_TRUE(history->Apply(change).ok());
  const std::vector<job::TaskRecord> tasks = *finder->Tasks(IdOf(3));
  ASSERT_THAT(tasks, SizeIs(2));
  EXPECT_EQ(tasks[0].restarts, 2);
  EXPECT_EQ(tasks[1].restarts, 1);
  EXPECT_EQ(finder->GetJob(IdOf(3))->state, job::JobState::kRunning);
}

TEST_F(HistoryDamageTest, VerdictsAreRecoveredFromTheFolders) {
  job::JobRecord job = MakeJob(IdOf(1));
  job.directory = home_ + "/jobs/" + job.id;
  {
    const std::unique_ptr<History> history = OpenHistory();
    ASSERT_TRUE(history->DeleteJob(job.id).ok());
    ASSERT_TRUE(history->Apply({.job = job, .tasks = {MakeTask({"worker", 0}, 2)}}).ok());
    job.state = job::JobState::kStopped;
    job.reason = "stopped by the user";
    ASSERT_TRUE(history->Apply({.job = job}).ok());
  }
  Damage("garbage");
  const std::unique_ptr<History> history = OpenHistory();
  EXPECT_EQ(history->GetJob(job.id)->state, job::JobState::kStopped);
  EXPECT_EQ(history->GetJob(job.id)->reason, "stopped by the user");
  const auto tasks = history->Tasks(job.id);
  ASSERT_THAT(*tasks, SizeIs(1));
  EXPECT_EQ((*tasks)[0].restarts, 2);
  EXPECT_EQ(history->GetJob(IdOf(2))->state, job::JobState::kUnreachable);
}

// The launcher writes the folder before it adds the job; a rebuild in between must not prevent
// that.
TEST_F(HistoryDamageTest, RecoveredJobsMayBeAdded) {
  Damage("garbage");
  const std::unique_ptr<History> history = OpenHistory();
  ASSERT_TRUE(history->AddJob(MakeJob(IdOf(1)), {MakeTask({"worker", 0})}).ok());
  EXPECT_EQ(history->GetJob(IdOf(1))->state, job::JobState::kRunning);
  EXPECT_EQ(history->AddJob(MakeJob(IdOf(1)), {}).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(HistoryDamageTest, TwoDamagedFilesInOneSecond) {
  base::FakeClock clock;
  HistoryOptions options;
  options.clock = &clock;
  for (int i = 0; i < 3; ++i) {
    Damage(absl::StrCat("garbage ", i));
    ASSERT_TRUE(History::Open(home_, options).ok());
  }
  std::vector<std::string> contents;
  for (const std::string& name : MovedAside())
    contents.push_back(*base::ReadFile(base::JoinPath(home_, name)));
  EXPECT_THAT(contents, testing::UnorderedElementsAre("garbage 0", "garbage 1", "garbage 2"));
}

}  // namespace
}  // namespace muster::history
