#include "jobs/notebook/password.h"

#include <set>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"

namespace muster::jobs {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(PasswordTest, RefusesShortOnes) {
  EXPECT_TRUE(CheckPassword("12345678").ok());
  EXPECT_EQ(CheckPassword("1234567").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(CheckPassword("").message()), HasSubstr("is empty"));
}

TEST(PasswordTest, AFileHasItInOneLine) {
  const base::TempDir folder;
  const std::string path = base::JoinPath(folder.path(), "password");
  for (const char* text : {"correct horse", "correct horse\n", "correct horse\r\n"}) {
    ASSERT_TRUE(base::ReplaceFile(path, text).ok());
    EXPECT_EQ(ReadPasswordFile(path).value_or(""), "correct horse");
  }
  for (const char* text : {"", "\n", "short\n", "correct horse\nbattery\n"}) {
    ASSERT_TRUE(base::ReplaceFile(path, text).ok());
    EXPECT_EQ(ReadPasswordFile(path).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ReadPasswordFile(folder.path()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadPasswordFile(path + "x").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PasswordTest, GeneratedOnesAreValidAndDiffer) {
  std::set<std::string> passwords;
  for (int i = 0; i < 100; ++i) {
    const std::string password = GeneratePassword();
    EXPECT_THAT(password, MatchesRegex("[a-z0-9]{5}(-[a-z0-9]{5}){3}"));
    EXPECT_TRUE(CheckPassword(password).ok());
    passwords.insert(password);
  }
  EXPECT_EQ(passwords.size(), 100);
}

}  // namespace
}  // namespace muster::jobs
