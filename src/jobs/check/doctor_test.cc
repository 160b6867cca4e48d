#include "jobs/check/doctor.h"

#include <algorithm>

#include "base/files/files.h"
#include "gmock/gmock.h"
#include "jobs/testing.h"

namespace muster::jobs {
namespace {

using platform::Grade;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Subjects(const std::vector<platform::Finding>& findings) {
  std::vector<std::string> subjects;
  for (const platform::Finding& finding : findings) subjects.push_back(finding.subject);
  return subjects;
}

TEST(DoctorTest, ChecksTheMachine) {
  TestService service;
  EXPECT_THAT(Subjects(CheckMachine(*service)), ElementsAre("kernel", "muster home", "gdb"));
}

TEST(DoctorTest, ADirectoryMayBeAbsentButNotAFile) {
  const base::TempDir temp;
  const platform::Finding absent = CheckDirectory("model dir", temp.path() + "/a/b");
  EXPECT_NE(absent.grade, Grade::kMissing) << absent.detail;
  EXPECT_THAT(absent.detail, HasSubstr(temp.path() + "/a/b: "));
  ASSERT_TRUE(base::ReplaceFile(temp.path() + "/file", "", 0644).ok());
  const platform::Finding file = CheckDirectory("model dir", temp.path() + "/file/b");
  EXPECT_EQ(file.grade, Grade::kMissing);
  EXPECT_THAT(file.detail, HasSubstr("/file is not a directory"));
}

TEST(DoctorTest, MemoryMustSufficeForAllReplicas) {
  TestService service;
  job::JobSpec spec = service.Load(kJob).spec;  // two replicas
  spec.roles[0].resources.memory_bytes = int64_t{1} << 40;
  EXPECT_EQ(CheckMemory(&spec).grade, Grade::kMissing);
  EXPECT_THAT(CheckMemory(&spec).detail, HasSubstr("the job requests 2.0TiB"));
  EXPECT_NE(CheckMemory(nullptr).grade, Grade::kMissing);
}

TEST(DoctorTest, ChecksAJobWithItsPlatform) {
  TestService service;
  service.local().findings = {{Grade::kWarning, "script of worker", "is empty"}};
  const auto findings = CheckJob(*service, service.Load(kJob), base::ProcessVariables());
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(Subjects(*findings), ElementsAre("script of worker", "memory", "open files"));
  const auto elsewhere =
      CheckJob(*service, service.Load(kJob, job::KubernetesTarget()), base::ProcessVariables());
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_THAT(Subjects(*elsewhere), ElementsAre("memory", "open files"));
}

TEST(DoctorTest, ATargetWithoutChecksHasNoFindings) {
  TestService service;
  const auto findings = CheckTarget(*service, job::KubernetesTarget());
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(*findings, IsEmpty());
}

}  // namespace
}  // namespace muster::jobs
