#include "history/job_folder.h"

#include "gmock/gmock.h"
#include "history/test_support.h"

namespace muster {
namespace {

using testing::HasSubstr;

JobRecord Example() {
  JobRecord job = MakeJob("mnist-1");
  job.directory = "/home/u/jobs/mnist-1";
  job.model_dir = "gs://b/\"m\"";
  job.resumed_from = "mnist-0";
  job.tasks = 7;
  return job;
}

TEST(JobFolderRecordTest, ReadsWhatItWrites) {
  const JobRecord job = Example();
  const absl::StatusOr<JobRecord> read = JobFolderRecordFromJson(JobFolderRecordToJson(job));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id, job.id);
  EXPECT_EQ(read->name, job.name);
  EXPECT_EQ(read->platform, job.platform);
  EXPECT_EQ(read->created, job.created);
  EXPECT_EQ(read->directory, job.directory);
  EXPECT_EQ(read->model_dir, job.model_dir);
  EXPECT_EQ(read->resumed_from, job.resumed_from);
  EXPECT_EQ(read->tasks, job.tasks);
}

TEST(JobFolderRecordTest, MistakesNameTheKey) {
  const std::string text = JobFolderRecordToJson(Example());
  const auto error_with = [&](const char* old_text, const char* new_text) {
    std::string changed = text;
    changed.replace(changed.find(old_text), std::string(old_text).size(), new_text);
    return std::string(JobFolderRecordFromJson(changed).status().message());
  };
  EXPECT_THAT(error_with("\"mnist-1\"", "5"), HasSubstr("id must be text"));
  EXPECT_THAT(error_with("\"platform\"", "\"x\""), HasSubstr("platform must be text"));
  EXPECT_THAT(error_with("\"tasks\": 7", "\"tasks\": -7"), HasSubstr("tasks must be from 0"));
  EXPECT_THAT(error_with("\"tasks\": 7", "\"tasks\": 1e99"), HasSubstr("tasks must be a whole"));
  EXPECT_THAT(error_with("1700000000000", "99999999999999999"), HasSubstr("created_ms must be"));
  EXPECT_THAT(error_with("1700000000000", "18446744073709551615"), HasSubstr("created_ms must be"));
  for (const char* garbage : {"", "[]", "{", "null", "\xff"}) {
    EXPECT_FALSE(JobFolderRecordFromJson(garbage).ok()) << garbage;
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
  ASSERT_TRUE(WriteFileAtomically(home_ + "/jobs/broken/job.json", "{").ok());
  std::filesystem::copy(home_ + "/jobs/a-1", home_ + "/jobs/copy-of-a-1");
  std::vector<std::string> ids;
  for (const JobRecord& job : ReadJobFolders(home_)) ids.push_back(job.id);
  EXPECT_THAT(ids, testing::ElementsAre("a-1", "b-2", "c-3"));
}

}  // namespace
}  // namespace muster
