#include "platform/kubernetes/log_copy.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"
#include "supervise/log/log_reader.h"

namespace muster::kubernetes {
namespace {

const cluster::TaskId kTask{"worker", 0};

class LogCopyTest : public testing::Test {
 protected:
  std::unique_ptr<LogCopy> Open() {
    auto copy = LogCopy::Open(temp_.path(), kTask, {});
    EXPECT_TRUE(copy.ok()) << copy.status();
    return *std::move(copy);
  }
  std::string Log() const {
    return base::ReadFile(absl::StrCat(temp_.path(), "/worker-0.log")).value();
  }

  const base::TempDir temp_;
  const LogSource first_{.pod = "a", .restart = 0};
};

TEST_F(LogCopyTest, WritesLinesWithoutTimestampsForAnyChunking) {
  auto copy = Open();
  copy->Begin(first_, 0);
  EXPECT_EQ(copy->since(), absl::InfinitePast());
  for (const char* piece : {"2026-05-01T12:00:00.5Z one\n2026-05", "-01T12:00:01Z tw", "o\n"}) {
    ASSERT_TRUE(copy->Take(piece).ok());
  }
  ASSERT_TRUE(copy->End(true).ok());
  EXPECT_EQ(Log(), "one\ntwo\n");
  EXPECT_TRUE(copy->IsComplete(first_));
  EXPECT_FALSE(copy->IsComplete({.pod = "b", .restart = 0}));

  supervise::LogReader reader(temp_.path(), kTask);
  EXPECT_EQ(absl::ToUnixMillis(reader.Next()->time), 1777636800500);
  EXPECT_EQ(absl::ToUnixMillis(reader.Next()->time), 1777636801000);
}

TEST_F(LogCopyTest, ResumesWithoutDuplicateOrLostLines) {
  constexpr char kThree[] =
      "2026-05-01T12:00:00Z a\n2026-05-01T12:00:01Z b\n2026-05-01T12:00:01Z c\n";
  {
    auto copy = Open();
    copy->Begin(first_, 0);
    ASSERT_TRUE(copy->Take(kThree).ok());
    ASSERT_TRUE(copy->Take("2026-05-01T12:00:01Z d").ok());  // cut in the middle of a line
    ASSERT_TRUE(copy->End(false).ok());
  }
  auto copy = Open();
  copy->Begin(first_, 0);
  EXPECT_EQ(absl::FormatTime(absl::RFC3339_full, copy->since(), absl::UTCTimeZone()),
            "2026-05-01T12:00:01+00:00");
  // The server resumes at a whole second, so some lines are sent again.
  ASSERT_TRUE(copy->Take("2026-05-01T12:00:01Z b\n2026-05-01T12:00:01Z c\n"
                         "2026-05-01T12:00:01Z d\n2026-05-01T12:00:02Z e\n")
                  .ok());
  ASSERT_TRUE(copy->End(true).ok());
  EXPECT_EQ(Log(), "a\nb\nc\nd\ne\n");
}

TEST_F(LogCopyTest, UnsavedOutputIsCopiedAgain) {
  {
    auto copy = Open();
    copy->Begin(first_, 0);
    ASSERT_TRUE(copy->Take("2026-05-01T12:00:00Z a\n").ok());  // the first line is saved at once
    ASSERT_TRUE(copy->Take("2026-05-01T12:00:01Z b\n").ok());
  }
  ASSERT_EQ(Log(), "a\nb\n");
  auto copy = Open();
  copy->Begin(first_, 0);
  ASSERT_TRUE(copy->Take("2026-05-01T12:00:00Z a\n2026-05-01T12:00:01Z b\n").ok());
  ASSERT_TRUE(copy->End(true).ok());
  EXPECT_EQ(Log(), "a\nb\n");
}

TEST_F(LogCopyTest, AnotherPodIsAnotherAttempt) {
  auto copy = Open();
  copy->Begin(first_, 0);
  ASSERT_TRUE(copy->Take("2026-05-01T12:00:05Z a\n").ok());
  ASSERT_TRUE(copy->End(true).ok());
  copy->Begin({.pod = "b", .restart = 0}, 1);
  EXPECT_EQ(copy->since(), absl::InfinitePast());
  ASSERT_TRUE(copy->Take("2026-05-01T12:00:06Z b\n2026-05-01T12:00:07Z end").ok());
  ASSERT_TRUE(copy->End(true).ok());
  EXPECT_EQ(Log(), "a\nb\nend");
  supervise::LogReader reader(temp_.path(), kTask);
  EXPECT_EQ(reader.Next()->attempt, 0);
  EXPECT_EQ(reader.Next()->attempt, 1);
}

TEST_F(LogCopyTest, ADamagedStateLosesNothing) {
  {
    auto copy = Open();
    copy->Begin(first_, 0);
    ASSERT_TRUE(copy->Take("2026-05-01T12:00:00Z a\n").ok());
    ASSERT_TRUE(copy->End(false).ok());
  }
  ASSERT_TRUE(base::ReplaceFile(absl::StrCat(temp_.path(), "/worker-0.copy"), "{\"pod\": 7").ok());
  auto copy = Open();
  copy->Begin(first_, 0);
  ASSERT_TRUE(copy->Take("2026-05-01T12:00:00Z a\n2026-05-01T12:00:01Z b\n").ok());
  ASSERT_TRUE(copy->End(true).ok());
  EXPECT_EQ(Log(), "a\na\nb\n");
}

TEST_F(LogCopyTest, LinesWithoutATimestampAreKept) {
  auto copy = Open();
  copy->Begin(first_, 0);
  ASSERT_TRUE(copy->Take("failed to watch file\n2026-05-01T12:00:00Z \n").ok());
  ASSERT_TRUE(copy->End(true).ok());
  EXPECT_EQ(Log(), "failed to watch file\n\n");
}

}  // namespace
}  // namespace muster::kubernetes
