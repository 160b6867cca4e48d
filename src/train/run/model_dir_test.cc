#include "train/run/model_dir.h"

#include <cstdlib>
#include <filesystem>

#include "base/files/files.h"
#include "base/testing.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"

namespace muster::train {
namespace {

class ModelDirTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("MUSTER_CACHE", cache_.path().c_str(), 1);
    ::setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);  // no server listens there
    ::setenv("AWS_ACCESS_KEY_ID", "id", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    environment_.self = {"evaluator", 0};
  }

  absl::StatusOr<std::unique_ptr<ModelDir>> Open() {
    return ModelDir::Open("s3://bucket/run", environment_, [](const std::string&) {});
  }

  base::TempDir cache_;
  Environment environment_;
};

TEST_F(ModelDirTest, ACompleteUploadLeavesNoLocalFolder) {
  std::string folder;
  {
    auto dir = Open();
    ASSERT_TRUE(dir.ok()) << dir.status();
    folder = (*dir)->folder();
    EXPECT_TRUE((*dir)->SendRest().ok());  // there is nothing to send
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ModelDirTest, FailedUploadsAreKept) {
  std::string file;
  {
    auto dir = Open();
    ASSERT_TRUE(dir.ok()) << dir.status();
    const std::string folder = base::JoinPath((*dir)->folder(), "eval");
    ASSERT_TRUE(base::MakeDirectories(folder).ok());
    file = base::JoinPath(folder, "latest.json");
    ASSERT_TRUE(base::ReplaceFile(file, "{}").ok());
    EXPECT_TRUE(absl::IsUnavailable((*dir)->SendRest()));
  }
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_TRUE(absl::IsUnavailable(Open().status()));  // the remote folder cannot be listed
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(ModelDirTest, FetchingAStepSendsWhatAnEarlierAttemptCouldNotSend) {
  environment_.job_id = "job-1";
  const auto open = [this] {
    return ModelDir::Open("memory://run", environment_, [](const std::string&) {});
  };
  const std::string folder = open().value()->folder();  // removed with the object
  ASSERT_TRUE(base::MakeDirectories(folder).ok());
  ASSERT_TRUE(base::ReplaceFile(base::JoinPath(folder, ".owner"), "job-1").ok());
  ASSERT_TRUE(checkpoint::SaveStep(folder, 5).ok());
  auto dir = open();
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_TRUE((*dir)->Fetch(5).ok());
  EXPECT_THAT(std::string((*dir)->Fetch(7).message()), testing::HasSubstr("available: 5"));
}

}  // namespace
}  // namespace muster::train
