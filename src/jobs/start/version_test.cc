#include "jobs/start/version.h"

#include <filesystem>

#include "base/files/files.h"
#include "gmock/gmock.h"
#include "jobs/control/remove.h"
#include "jobs/start/run.h"
#include "jobs/testing.h"

namespace muster::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class VersionTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::ReplaceFile(project_.path() + "/" + name, text).ok());
  }
  job::Submission Load(job::Target target = job::LocalTarget()) {
    job::Submission submission = service_.Load(kJob, std::move(target));
    submission.working_dir = project_.path();
    return submission;
  }
  job::JobRecord Start(job::Target target = job::LocalTarget()) {
    const auto plan = PlanRun(*service_, {.submission = Load(std::move(target))});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return **StartPlanned(*service_, *plan);
  }
  RunPlan Plan(bool restart = false) {
    const auto plan = PlanRun(*service_, {.submission = Load(), .restart = restart});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *plan;
  }
  static std::vector<std::string> Folders(const std::string& path) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const base::TempDir project_;
  TestService service_;
};

TEST_F(VersionTest, AJobKeepsTheProgramThatItWasStartedWith) {
  Write("train.py", "first\n");
  const job::JobRecord job = Start();
  const job::Submission& submitted = service_.local().submissions[0];
  EXPECT_FALSE(submitted.version.program.empty());
  const worktree::VersionStore versions(supervise::JobDir(job.directory).versions());
  EXPECT_EQ(*versions.Read(submitted.version.program, "train.py"), "first\n");
}

TEST_F(VersionTest, NothingEditedIsNoChange) {
  Write("train.py", "first\n");
  Start();
  Write("results.json", "{}");  // a task may have written it
  Write("other.yaml", "name: y\nroles: {worker: {}}\n");
  Write("added.py", "");
  const RunPlan plan = Plan();
  EXPECT_THAT(plan.edited.files, IsEmpty());
  EXPECT_EQ(plan.submission.version, plan.running->submission.version);
  EXPECT_EQ(plan.submission.generation, 0);
}

TEST_F(VersionTest, AnEditIsReportedWithItsTexts) {
  Write("train.py", "first\n");
  const job::JobRecord job = Start();
  const std::string before = service_.local().submissions[0].version.program;
  Write("train.py", "second\n");
  service_.local().update.restarted = {{"worker", 0}};
  const RunPlan plan = Plan();
  ASSERT_THAT(plan.edited.files, SizeIs(1));
  EXPECT_EQ(plan.edited.files[0].change.path, "train.py");
  EXPECT_EQ(plan.edited.files[0].before, "first\n");
  EXPECT_EQ(plan.edited.files[0].after, "second\n");
  EXPECT_NE(plan.submission.version.program, before);
  ASSERT_TRUE(ApplyPlanned(*service_, plan).ok());
  ASSERT_THAT(service_.local().updates, SizeIs(1));
  EXPECT_EQ(service_.local().updates[0].second.version, plan.submission.version);
  EXPECT_THAT(Folders(supervise::JobDir(job.directory).versions()),
              ElementsAre(plan.submission.version.program.substr(0, 16)));
}

TEST_F(VersionTest, AnEditAfterThePlanIsNotApplied) {
  Write("train.py", "first\n");
  Start();
  Write("train.py", "second\n");
  service_.local().update.restarted = {{"worker", 0}};
  const RunPlan plan = Plan();
  Write("train.py", "third\n");
  EXPECT_EQ(ApplyPlanned(*service_, plan).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(service_.local().updates, IsEmpty());
}

TEST_F(VersionTest, ARefusedChangeKeepsTheOldVersion) {
  Write("train.py", "first\n");
  const job::JobRecord job = Start();
  Write("train.py", "second\n");
  service_.local().update.restarted = {{"worker", 0}};
  service_.local().updated = absl::FailedPreconditionError("the job is restarting");
  const RunPlan plan = Plan();
  EXPECT_EQ(ApplyPlanned(*service_, plan).code(), absl::StatusCode::kFailedPrecondition);
  const std::string old = plan.running->submission.version.program;
  EXPECT_THAT(Folders(supervise::JobDir(job.directory).versions()), ElementsAre(old.substr(0, 16)));
}

TEST_F(VersionTest, RestartChangesTheGenerationOfARunningJob) {
  Write("train.py", "first\n");
  Start();
  service_.local().update.restarted = {{"worker", 0}};
  EXPECT_EQ(Plan(/*restart=*/true).submission.generation, 1);
  service_.local().update = {};  // a platform that restarts nothing
  const auto plan = PlanRun(*service_, {.submission = Load(), .restart = true});
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("--restart has no effect"));
}

TEST_F(VersionTest, AProgramThatCannotBeKeptIsReportedAndRuns) {
  Write("train.py", "first\n");
  std::filesystem::create_directories(service_->home());
  ASSERT_TRUE(base::ReplaceFile(VersionContents(*service_), "not a folder").ok());
  Start();
  EXPECT_THAT(service_.notices, testing::Contains(HasSubstr("cannot keep a copy of the program")));
  EXPECT_EQ(service_.local().submissions[0].version, job::WorkVersion());
}

TEST_F(VersionTest, APlatformThatCannotChangeJobsNamesTheEditedFiles) {
  Write("train.py", "first\n");
  Start(job::VertexTarget());  // its id is chosen by the clock
  const auto same = PlanRun(*service_, {.submission = Load(job::VertexTarget())});
  ASSERT_TRUE(same.ok()) << same.status();
  Write("train.py", "second\n");
  const auto edited = PlanRun(*service_, {.submission = Load(job::VertexTarget())});
  EXPECT_EQ(edited.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(edited.status().message()), HasSubstr("train.py changed; "));
}

TEST_F(VersionTest, RemovingAJobRemovesContentsThatNoOtherUses) {
  Write("train.py", "first\n");
  const job::JobRecord job = Start();
  EXPECT_THAT(Folders(VersionContents(*service_)), SizeIs(1));
  ASSERT_TRUE(RemoveJob(*service_, job.id).ok());
  EXPECT_THAT(Folders(VersionContents(*service_)), IsEmpty());
}

}  // namespace
}  // namespace muster::jobs
