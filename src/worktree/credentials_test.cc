#include "worktree/credentials.h"

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"

namespace muster::worktree {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

base::Variables From(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

TEST(CredentialsTest, TheEnvironmentNamesFiles) {
  EXPECT_THAT(CredentialFiles(From({{"GOOGLE_APPLICATION_CREDENTIALS", "/g.json"},
                                    {"AWS_SHARED_CREDENTIALS_FILE", "/aws"},
                                    {"KUBECONFIG", "/k1::/k2"},
                                    {"HF_TOKEN_PATH", "/hf"}})),
              UnorderedElementsAre("/g.json", "/aws", "/k1", "/k2", "/hf"));
}

// docs/ssh.md lists every name.
TEST(CredentialsTest, TheListIsDocumented) {
  const auto docs = base::ReadFile(base::JoinPath(MUSTER_DOCS, "ssh.md"));
  ASSERT_TRUE(docs.ok()) << docs.status();
  for (absl::string_view line : absl::StrSplit(kCredentialPatterns, '\n', absl::SkipEmpty())) {
    absl::ConsumePrefix(&line, "!");
    absl::ConsumePrefix(&line, "**/");
    EXPECT_THAT(*docs, HasSubstr(absl::StrCat("`", line, "`")));
  }
}

TEST(CredentialsTest, AHomeFolderIsSentOnlyOnRequest) {
  const base::TempDir outer;
  const std::string home = outer.path() + "/me";
  std::filesystem::create_directories(home + "/project");
  std::filesystem::create_directory_symlink(home, outer.path() + "/link");
  const base::Variables variables = From({{"HOME", outer.path() + "/link"}});
  job::Submission submission;
  for (const std::string& folder : {home, outer.path(), outer.path() + "/link", std::string("/")}) {
    submission.working_dir = folder;
    submission.send_home = false;
    const absl::Status refused = CheckSendable(submission, variables);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << folder;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("--send-home"));
    submission.send_home = true;
    EXPECT_TRUE(CheckSendable(submission, variables).ok()) << folder;
  }
  submission.send_home = false;
  submission.working_dir = home + "/project";
  EXPECT_TRUE(CheckSendable(submission, variables).ok());
  EXPECT_TRUE(CheckSendable(submission, From({})).ok());
}

}  // namespace
}  // namespace muster::worktree
