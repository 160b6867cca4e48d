#include "history/history.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "gmock/gmock.h"
#include "history/rows.h"
#include "history/test_support.h"

namespace muster::history {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

job::JobRecord FullJob() {
  job::JobRecord job = MakeJob("mnist-1", 1, job::JobState::kFailed);
  job.reason = "worker:1 failed: it's \"over\"\n";
  job.created += absl::Nanoseconds(123'456'789);
  job.started = job.created + absl::Seconds(1);
  job.finished = job.created + absl::Hours(1);
  job.directory = "/home/u/jobs/mnist-1";
  job.model_dir = "gs://bucket/m";
  job.resumed_from = "mnist-0";
  job.tasks = 3;
  job.supervisor = process::ProcessIdentity{4711, uint64_t{1} << 63, "boot-1"};
  job.failure = R"({"summary":"x"})";
  return job;
}

job::TaskRecord FullTask() {
  job::TaskRecord task = MakeTask({"worker", 1}, 2);
  task.state = job::TaskState::kFailed;
  task.attempt = 2;
  task.host = "h";
  task.address = "h:2222";
  task.pid = 99;
  task.command = "python 'a b.py'";
  task.started = absl::FromUnixNanos(1'700'000'000'000'000'001);
  task.finished = absl::FromUnixNanos(1'700'000'001'000'000'002);
  task.exit_code = 139;
  task.reason = "killed by SIGSEGV";
  return task;
}

void ExpectEqual(const job::JobRecord& a, const job::JobRecord& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.platform, b.platform);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.created, b.created);
  EXPECT_EQ(a.started, b.started);
  EXPECT_EQ(a.finished, b.finished);
  EXPECT_EQ(a.directory, b.directory);
  EXPECT_EQ(a.model_dir, b.model_dir);
  EXPECT_EQ(a.resumed_from, b.resumed_from);
  EXPECT_EQ(a.tasks, b.tasks);
  EXPECT_EQ(a.supervisor, b.supervisor);
  EXPECT_EQ(a.failure, b.failure);
}

void ExpectEqual(const job::TaskRecord& a, const job::TaskRecord& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.attempt, b.attempt);
  EXPECT_EQ(a.restarts, b.restarts);
  EXPECT_EQ(a.host, b.host);
  EXPECT_EQ(a.address, b.address);
  EXPECT_EQ(a.pid, b.pid);
  EXPECT_EQ(a.command, b.command);
  EXPECT_EQ(a.started, b.started);
  EXPECT_EQ(a.finished, b.finished);
  EXPECT_EQ(a.exit_code, b.exit_code);
  EXPECT_EQ(a.reason, b.reason);
}

std::vector<std::string> Ids(const absl::StatusOr<std::vector<job::JobRecord>>& jobs) {
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  std::vector<std::string> ids;
  if (!jobs.ok()) return ids;
  for (const job::JobRecord& job : *jobs) ids.push_back(job.id);
  return ids;
}

TEST_F(HistoryTest, FirstOpenCreatesAPrivateFileWithoutANotice) {
  const std::string home = home_;
  home_ = base::JoinPath(home, "new/home");
  ASSERT_NE(OpenHistory(), nullptr);
  struct stat info {};
  ASSERT_EQ(::stat(DatabasePath().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
  EXPECT_THAT(notices_, IsEmpty());
  home_ = home;
}

TEST_F(HistoryTest, EveryFieldIsReadBack) {
  OpenHistory()->AddJob(FullJob(), {FullTask(), MakeTask({"ps", 0})}).IgnoreError();
  const std::unique_ptr<History> history = OpenHistory();
  const absl::StatusOr<job::JobRecord> job = history->GetJob("mnist-1");
  ASSERT_TRUE(job.ok()) << job.status();
  ExpectEqual(*job, FullJob());
  const absl::StatusOr<std::vector<job::TaskRecord>> tasks = history->Tasks("mnist-1");
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  ASSERT_EQ(tasks->size(), 2u);
  ExpectEqual(tasks->at(0), FullTask());
  ExpectEqual(tasks->at(1), MakeTask({"ps", 0}));
}

TEST_F(HistoryTest, AbsentOptionalFieldsStayAbsent) {
  const std::unique_ptr<History> history = OpenHistory();
  ASSERT_TRUE(history->AddJob(MakeJob("a-1"), {}).ok());
  ExpectEqual(*history->GetJob("a-1"), MakeJob("a-1"));
}

TEST_F(HistoryTest, DuplicateIdsAreRejected) {
  const std::unique_ptr<History> history = OpenHistory();
  ASSERT_TRUE(history->AddJob(MakeJob("a-1"), {}).ok());
  EXPECT_EQ(history->AddJob(MakeJob("a-1"), {}).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(HistoryTest, ApplyUpdatesAddsAndRemoves) {
  const std::unique_ptr<History> history = OpenHistory();
  job::JobRecord job = MakeJob("a-1", 0, job::JobState::kStarting);
  ASSERT_TRUE(history->AddJob(job, {MakeTask({"worker", 0}), MakeTask({"ps", 0})}).ok());
  job::StateChange change;
  change.job = job;
  change.job.state = job::JobState::kRunning;
  change.tasks = {MakeTask({"worker", 0}, 5), MakeTask({"worker", 1})};
  change.removed = {{"ps", 0}, {"ps", 7}};
  change.events = {MakeEvent("one"), MakeEvent("two")};
  ASSERT_TRUE(history->Apply(change).ok());

  EXPECT_EQ(history->GetJob("a-1")->state, job::JobState::kRunning);
  const std::vector<job::TaskRecord> tasks = *history->Tasks("a-1");
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].restarts, 5);
  EXPECT_EQ(tasks[1].id, (cluster::TaskId{"worker", 1}));
}

TEST_F(HistoryTest, TasksKeepTheOrderOfTheirRoles) {
  const std::unique_ptr<History> history = OpenHistory();
  ASSERT_TRUE(history
                  ->AddJob(MakeJob("a-1"), {MakeTask({"worker", 0}), MakeTask({"worker", 1}),
                                            MakeTask({"chief", 0})})
                  .ok());
  job::StateChange change;
  change.job = MakeJob("a-1");
  change.tasks = {MakeTask({"worker", 10}), MakeTask({"worker", 2})};
  ASSERT_TRUE(history->Apply(change).ok());
  const std::vector<job::TaskRecord> tasks = *history->Tasks("a-1");
  std::vector<std::string> names;
  for (const job::TaskRecord& task : tasks) names.push_back(task.id.ToString());
  EXPECT_THAT(names, ElementsAre("worker:0", "worker:1", "worker:2", "worker:10", "chief:0"));
}

TEST_F(HistoryTest, TaskNamesOfTheNewestJobComeFirst) {
  const std::unique_ptr<History> history = OpenHistory();
  EXPECT_TRUE(history->TaskNames()->empty());
  ASSERT_TRUE(history->AddJob(MakeJob("a-1", 1), {MakeTask({"worker", 0})}).ok());
  ASSERT_TRUE(
      history->AddJob(MakeJob("b-1", 2), {MakeTask({"worker", 0}), MakeTask({"chief", 0})}).ok());
  const auto all = history->TaskNames();
  ASSERT_TRUE(all.ok()) << all.status();
  std::vector<std::string> names;
  for (const auto& [job, task] : *all) names.push_back(job + " " + task.ToString());
  EXPECT_THAT(names, ElementsAre("b-1 worker:0", "b-1 chief:0", "a-1 worker:0"));
}

TEST_F(HistoryTest, EventsAreNumberedPerJobAndReadInPages) {
  const std::unique_ptr<History> history = OpenHistory();
  for (int i = 0; i < 4; ++i) {
    for (const char* id : {"a-1", "b-1"}) {
      job::StateChange change;
      change.job = MakeJob(id);
      change.events = {MakeEvent(absl::StrCat(id, " ", 2 * i)),
                       MakeEvent(absl::StrCat(id, " ", 2 * i + 1))};
      ASSERT_TRUE(history->Apply(change).ok());
    }
  }
  const std::vector<job::Event> page = *history->Events("b-1", 3, 2);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].sequence, 4);
  EXPECT_EQ(page[0].message, "b-1 3");
  EXPECT_EQ(page[0].kind, "task");
  EXPECT_EQ(page[0].subject, "worker:0");
  EXPECT_EQ(page[0].time, absl::FromUnixSeconds(1'700'000'000));
  EXPECT_EQ(page[1].sequence, 5);
  EXPECT_EQ(history->Events("a-1")->size(), 8u);
  EXPECT_THAT(*history->Events("a-1", 8), IsEmpty());
  EXPECT_THAT(*history->Events("nobody"), IsEmpty());
}

TEST_F(HistoryTest, ListsNewestFirst) {
  const std::unique_ptr<History> history = OpenHistory();
  const job::JobState states[] = {job::JobState::kRunning, job::JobState::kSucceeded,
                                  job::JobState::kUnreachable, job::JobState::kFailed,
                                  job::JobState::kStopped};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(history->AddJob(MakeJob(absl::StrCat("j-", i), i, states[i]), {}).ok());
  }
  EXPECT_THAT(Ids(history->ListJobs()), ElementsAre("j-4", "j-3", "j-2", "j-1", "j-0"));
  EXPECT_THAT(Ids(history->ListJobs({.limit = 2})), ElementsAre("j-4", "j-3"));
  EXPECT_THAT(Ids(history->ListJobs({.only_active = true})), ElementsAre("j-2", "j-0"));
  EXPECT_THAT(Ids(history->FinishedBeyond(1)), ElementsAre("j-3", "j-1"));
  EXPECT_THAT(Ids(history->FinishedBeyond(0)), ElementsAre("j-4", "j-3", "j-1"));
  EXPECT_THAT(Ids(history->FinishedBeyond(9)), IsEmpty());
}

TEST_F(HistoryTest, FiltersCountsAndPagesJobs) {
  const std::unique_ptr<History> history = OpenHistory();
  const job::JobState states[] = {job::JobState::kRunning, job::JobState::kFailed};
  for (int i = 0; i < 6; ++i) {
    job::JobRecord job = MakeJob(absl::StrCat("j-", i), i, states[i % 2]);
    job.name = i < 3 ? "MNIST_a" : "mnist%b";
    job.platform = i == 5 ? "ssh" : "local";
    ASSERT_TRUE(history->AddJob(job, {}).ok());
  }
  EXPECT_THAT(Ids(history->ListJobs({.offset = 1, .limit = 2})), ElementsAre("j-4", "j-3"));
  EXPECT_THAT(Ids(history->ListJobs({.offset = 9})), IsEmpty());
  EXPECT_THAT(Ids(history->ListJobs({.states = {job::JobState::kRunning}})),
              ElementsAre("j-4", "j-2", "j-0"));
  EXPECT_THAT(Ids(history->ListJobs({.platform = "ssh"})), ElementsAre("j-5"));
  EXPECT_THAT(Ids(history->ListJobs({.text = "mnist_"})), ElementsAre("j-2", "j-1", "j-0"));
  EXPECT_THAT(Ids(history->ListJobs({.text = "t%B"})), ElementsAre("j-5", "j-4", "j-3"));
  EXPECT_THAT(Ids(history->ListJobs({.text = "J-1", .ids = {"j-5", "absent"}})),
              ElementsAre("j-5", "j-1"));
  EXPECT_THAT(Ids(history->ListJobs({.text = "'; DROP TABLE jobs; --"})), IsEmpty());
  const auto counts = history->CountJobs({.text = "mnist_", .limit = 1});
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(*counts, ElementsAre(testing::Pair(job::JobState::kRunning, 2),
                                   testing::Pair(job::JobState::kFailed, 1)));
}

TEST_F(HistoryTest, VersionChangesWithTheChangesOfOthers) {
  const std::unique_ptr<History> reader = OpenHistory();
  const std::unique_ptr<History> writer = OpenHistory();
  const auto first = reader->Version();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*reader->Version(), *first);
  ASSERT_TRUE(writer->AddJob(MakeJob("j-1"), {}).ok());
  const std::string second = *reader->Version();
  EXPECT_NE(second, *first);
  EXPECT_EQ(*reader->Version(), second);
  std::filesystem::remove(DatabasePath());
  EXPECT_NE(*reader->Version(), second);
}

TEST_F(HistoryTest, DeleteRemovesTasksAndEvents) {
  const std::unique_ptr<History> history = OpenHistory();
  job::StateChange change;
  change.job = MakeJob("a-1");
  change.tasks = {MakeTask({"worker", 0})};
  change.events = {MakeEvent("x")};
  ASSERT_TRUE(history->Apply(change).ok());
  ASSERT_TRUE(history->DeleteJob("a-1").ok());
  EXPECT_EQ(history->GetJob("a-1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(*history->Tasks("a-1"), IsEmpty());
  EXPECT_THAT(*history->Events("a-1"), IsEmpty());
  EXPECT_EQ(history->DeleteJob("a-1").code(), absl::StatusCode::kNotFound);
}

TEST_F(HistoryTest, NewerFormatIsLeftAlone) {
  OpenHistory();
  auto database = Database::Open(DatabasePath(), absl::Seconds(1));
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)->Execute("PRAGMA user_version = 99").ok());
  const absl::Status status = History::Open(home_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("written by a newer muster"));
  EXPECT_THAT(MovedAside(), IsEmpty());
}

TEST_F(HistoryTest, UnknownStatesDoNotHideOtherJobs) {
  const std::unique_ptr<History> history = OpenHistory();
  ASSERT_TRUE(history->AddJob(MakeJob("a-1"), {}).ok());
  auto database = Database::Open(DatabasePath(), absl::Seconds(1));
  ASSERT_TRUE((*database)->Execute("UPDATE jobs SET state = 'Hibernating'").ok());
  const absl::StatusOr<job::JobRecord> job = history->GetJob("a-1");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state, job::JobState::kUnreachable);
  EXPECT_THAT(job->reason, HasSubstr("Hibernating"));
}

TEST_F(HistoryTest, UnwritableHomeErrorNamesTheRemedy) {
  ASSERT_EQ(::chmod(home_.c_str(), 0555), 0);
  EXPECT_TRUE(Succeeded(Fork([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return false;
    const absl::Status status = History::Open(home_).status();
    return status.code() == absl::StatusCode::kPermissionDenied &&
           absl::StrContains(status.message(), absl::StrCat(home_, " is not writable")) &&
           absl::StrContains(status.message(), "MUSTER_HOME");
  })));
  ASSERT_EQ(::chmod(home_.c_str(), 0755), 0);
}

double CpuMillis() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1e3 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-3 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST_F(HistoryTest, TenThousandJobsAreListedAtOnce) {
  const std::unique_ptr<History> history = OpenHistory();
  {
    auto database = Database::Open(DatabasePath(), absl::Seconds(1));
    ASSERT_TRUE(database.ok());
    auto transaction = Transaction::Begin(**database);
    ASSERT_TRUE(transaction.ok());
    for (int i = 0; i < 10'000; ++i) {
      job::JobRecord job = FullJob();
      job.id = absl::StrCat("mnist-", i);
      job.created = absl::FromUnixSeconds(i);
      ASSERT_TRUE(UpsertJob(**database, job).ok());
      ASSERT_TRUE(UpsertTasks(**database, job.id, {FullTask()}).ok());
    }
    ASSERT_TRUE(transaction->Commit().ok());
  }
  ASSERT_EQ(history->ListJobs()->size(), 10'000u);
  const double before = CpuMillis();
  const absl::StatusOr<std::vector<job::JobRecord>> jobs = history->ListJobs();
  const double took = CpuMillis() - before;
  ASSERT_EQ(jobs->size(), 10'000u);
  EXPECT_EQ(jobs->front().id, "mnist-9999");
  RecordProperty("cpu_ms", absl::StrCat(took));
  // About 20 ms without optimisation; sanitizers multiply it.
  EXPECT_LT(took, 250);
}

TEST_F(HistoryTest, AJobPassesFromItsSubmitterToItsSupervisorOnce) {
  const std::unique_ptr<History> history = OpenHistory();
  const process::ProcessIdentity submitter{.pid = 1, .start_ticks = 1, .host = "b"};
  const process::ProcessIdentity supervisor{.pid = 2, .start_ticks = 2, .host = "b"};
  job::JobRecord pending = MakeJob("a-1", 0, job::JobState::kPending);
  pending.supervisor = submitter;
  job::JobRecord lost = pending;
  lost.state = job::JobState::kFailed;
  job::JobRecord started = MakeJob("a-1", 0, job::JobState::kStarting);
  started.supervisor = supervisor;

  // The supervisor wins: a later attempt to mark the job as dead with its submitter fails.
  ASSERT_TRUE(history->AddJob(pending, {}).ok());
  ASSERT_TRUE(history->Apply({.job = started}).ok());
  EXPECT_EQ(history->Apply({.job = lost}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(history->GetJob("a-1")->state, job::JobState::kStarting);

  // The other order: the job stays as marked, and the supervisor gets the error.
  ASSERT_TRUE(history->DeleteJob("a-1").ok());
  ASSERT_TRUE(history->AddJob(pending, {}).ok());
  ASSERT_TRUE(history->Apply({.job = lost}).ok());
  EXPECT_EQ(history->Apply({.job = started}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(history->GetJob("a-1")->state, job::JobState::kFailed);
}

TEST_F(HistoryTest, TheFirstVerdictStands) {
  const std::unique_ptr<History> history = OpenHistory();
  ASSERT_TRUE(history->Apply({.job = MakeJob("a-1", 0, job::JobState::kSucceeded)}).ok());
  EXPECT_TRUE(history->Apply({.job = MakeJob("a-1", 0, job::JobState::kSucceeded)}).ok());
  EXPECT_EQ(history->Apply({.job = MakeJob("a-1", 0, job::JobState::kFailed)}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(history->GetJob("a-1")->state, job::JobState::kSucceeded);
}

}  // namespace
}  // namespace muster::history
