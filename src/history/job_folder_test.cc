#include "history/job_folder.h"

#include "gmock/gmock.h"
#include "history/test_support.h"

namespace muster::history {
namespace {

using testing::HasSubstr;

job::JobRecord Example() {
  job::JobRecord job = MakeJob("mnist-1");
  job.directory = "/home/u/jobs/mnist-1";
  job.model_dir = "gs://b/\"m\"";
  job.resumed_from = "mnist-0";
  job.tasks = 7;
  return job;
}

job::TaskRecord ExampleTask() {
  job::TaskRecord task = MakeTask({"worker", 3});
  task.state = job::TaskState::kFailed;
  task.attempt = 2;
  task.restarts = 2;
  task.host = "h";
  task.address = "h:1";
  task.command = "train";
  task.exit_code = 137;
  task.reason = "killed";
  task.started = absl::FromUnixMillis(5);
  task.finished = absl::FromUnixMillis(6);
  return task;
}

TEST(JobFolderRecordTest, BeforeTheEndHoldsConstantFields) {
  const job::JobRecord job = Example();
  const auto read = JobFolderFromJson(JobFolderToJson(job, {ExampleTask()}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->job.id, job.id);
  EXPECT_EQ(read->job.name, job.name);
  EXPECT_EQ(read->job.platform, job.platform);
  EXPECT_EQ(read->job.created, job.created);
  EXPECT_EQ(read->job.directory, job.directory);
  EXPECT_EQ(read->job.model_dir, job.model_dir);
  EXPECT_EQ(read->job.resumed_from, job.resumed_from);
  EXPECT_EQ(read->job.tasks, 1);
  EXPECT_EQ(read->job.state, job::JobState::kPending);
  ASSERT_EQ(read->tasks.size(), 1u);
  EXPECT_EQ(read->tasks[0].id, (cluster::TaskId{"worker", 3}));
  EXPECT_EQ(read->tasks[0].state, job::TaskState::kPending);
}

TEST(JobFolderRecordTest, FromTheEndOnHoldsTheVerdict) {
  job::JobRecord job = Example();
  job.state = job::JobState::kFailed;
  job.reason = "why";
  job.failure = "{}";
  job.started = absl::FromUnixMillis(7);
  job.finished = absl::FromUnixMillis(8);
  const job::TaskRecord task = ExampleTask();
  const auto read = JobFolderFromJson(JobFolderToJson(job, {task}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->job.state, job::JobState::kFailed);
  EXPECT_EQ(read->job.reason, "why");
  EXPECT_EQ(read->job.failure, "{}");
  EXPECT_EQ(read->job.started, job.started);
  EXPECT_EQ(read->job.finished, job.finished);
  const job::TaskRecord& again = read->tasks.at(0);
  EXPECT_EQ(again.state, task.state);
  EXPECT_EQ(again.attempt, task.attempt);
  EXPECT_EQ(again.restarts, task.restarts);
  EXPECT_EQ(again.host, task.host);
  EXPECT_EQ(again.address, task.address);
  EXPECT_EQ(again.command, task.command);
  EXPECT_EQ(again.exit_code, task.exit_code);
  EXPECT_EQ(again.reason, task.reason);
  EXPECT_EQ(again.started, task.started);
  EXPECT_EQ(again.finished, task.finished);
}

TEST(JobFolderRecordTest, MistakesNameTheKey) {
  job::JobRecord job = Example();
  job.state = job::JobState::kFailed;
  const std::string text = JobFolderToJson(job, {ExampleTask()});
  const auto error_with = [&](const char* old_text, const char* new_text) {
    std::string changed = text;
    changed.replace(changed.find(old_text), std::string(old_text).size(), new_text);
    return std::string(JobFolderFromJson(changed).status().message());
  };
  EXPECT_THAT(error_with("\"mnist-1\"", "5"), HasSubstr("id must be text"));
  EXPECT_THAT(error_with("\"platform\"", "\"x\""), HasSubstr("platform must be text"));
  EXPECT_THAT(error_with("\"Failed\"", "\"Running\""), HasSubstr("state must be"));
  EXPECT_THAT(error_with("\"index\": 3", "\"index\": -3"), HasSubstr("index must be from 0"));
  EXPECT_THAT(error_with("\"index\": 3", "\"index\": 1e99"), HasSubstr("index must be a whole"));
  EXPECT_THAT(error_with("\"tasks\"", "\"x\""), HasSubstr("tasks must be a list"));
  EXPECT_THAT(error_with("1700000000000", "99999999999999999"), HasSubstr("created_ms must be"));
  EXPECT_THAT(error_with("1700000000000", "18446744073709551615"), HasSubstr("created_ms must be"));
  for (const char* garbage : {"", "[]", "{", "null", "\xff"}) {
    EXPECT_FALSE(JobFolderFromJson(garbage).ok()) << garbage;
  }
}

class JobFolderTest : public HistoryTest {};

TEST_F(JobFolderTest, ReadsEveryFolderThatCanBeRead) {
  EXPECT_TRUE(ReadJobFolders(home_).empty());
  WriteJobFolder(MakeJob("b-2", 2));
  WriteJobFolder(MakeJob("a-1", 1));
  WriteJobFolder(MakeJob("c-3", 3));
  std::filesystem::create_directories(home_ + "/jobs/empty");
  std::filesystem::create_directories(home_ + "/jobs/broken");
  ASSERT_TRUE(base::WriteFileAtomically(home_ + "/jobs/broken/job.json", "{").ok());
  std::filesystem::copy(home_ + "/jobs/a-1", home_ + "/jobs/copy-of-a-1");
  std::vector<std::string> ids;
  for (const JobFolder& folder : ReadJobFolders(home_)) ids.push_back(folder.job.id);
  EXPECT_THAT(ids, testing::ElementsAre("a-1", "b-2", "c-3"));
}

}  // namespace
}  // namespace muster::history
