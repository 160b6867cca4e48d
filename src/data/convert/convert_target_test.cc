#include "data/convert/convert_target.h"

#include <filesystem>
#include <string>

#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

class ConvertTargetTest : public testing::Test {
 protected:
  std::string In(const std::string& name) const { return dir_.path() + "/" + name; }
  const base::TempDir dir_;
};

TEST_F(ConvertTargetTest, FilesAppearTogether) {
  {
    auto target = ConvertTarget::Open(In("a/b/"));
    ASSERT_TRUE(target.ok()) << target.status();
    ASSERT_TRUE(base::ReplaceFile(base::JoinPath(target->staging(), "x"), "1").ok());
    ASSERT_TRUE(base::ReplaceFile(base::JoinPath(target->staging(), "y"), "2").ok());
    EXPECT_FALSE(fs::exists(In("a/b/x")));
    ASSERT_TRUE(target->Publish({"x", "y"}).ok());
  }
  EXPECT_EQ(base::ReadFile(In("a/b/x")).value_or(""), "1");
  EXPECT_EQ(base::ReadFile(In("a/b/y")).value_or(""), "2");
  EXPECT_EQ(std::distance(fs::directory_iterator(In("a/b")), fs::directory_iterator()), 2);
}

TEST_F(ConvertTargetTest, WithoutPublishNothingChanges) {
  {
    auto target = ConvertTarget::Open(In("a/b"));
    ASSERT_TRUE(target.ok()) << target.status();
    ASSERT_TRUE(base::ReplaceFile(base::JoinPath(target->staging(), "x"), "1").ok());
  }
  EXPECT_TRUE(fs::is_empty(dir_.path()));
  fs::create_directories(In("a"));
  ASSERT_TRUE(base::ReplaceFile(In("a/x"), "old").ok());
  {
    auto target = ConvertTarget::Open(In("a"));
    ASSERT_TRUE(target.ok()) << target.status();
    ASSERT_TRUE(base::ReplaceFile(base::JoinPath(target->staging(), "x"), "new").ok());
  }
  EXPECT_EQ(base::ReadFile(In("a/x")).value_or(""), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(In("a")), fs::directory_iterator()), 1);
}

TEST_F(ConvertTargetTest, OneConversionAtATime) {
  {
    const auto first = ConvertTarget::Open(In("a"));
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(ConvertTarget::Open(In("a")).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(ConvertTarget::Open(In("a")).ok());
}

TEST_F(ConvertTargetTest, AFileInTheWayIsAnError) {
  ASSERT_TRUE(base::ReplaceFile(In("file"), "").ok());
  EXPECT_FALSE(ConvertTarget::Open(In("file")).ok());
  EXPECT_FALSE(ConvertTarget::Open(In("file/below")).ok());
  EXPECT_TRUE(fs::is_regular_file(In("file")));
}

}  // namespace
}  // namespace muster::data
