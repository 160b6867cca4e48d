#include "supervise/log/log_page.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "supervise/log/log_testing.h"

namespace muster::supervise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const cluster::TaskId kFirst{"worker", 0};
const cluster::TaskId kSecond{"worker", 1};

std::vector<std::string> Texts(const LogPage& page) {
  std::vector<std::string> texts;
  for (const LogLine& line : page.lines) texts.push_back(line.text);
  return texts;
}

class LogPageTest : public LogTest {
 protected:
  LogPageQuery Query(int limit) const {
    return {.directory = directory_, .tasks = {kFirst, kSecond}, .limit = limit};
  }

  // Writes numbered lines, alternately by two tasks, in segments of a few lines.
  void WriteLines(int count) {
    LoggedTask first(directory_, kFirst, {.rotate_bytes = 100, .keep = 1000});
    LoggedTask second(directory_, kSecond, {.rotate_bytes = 70, .keep = 1000});
    for (int i = 0; i < count; ++i) {
      LoggedTask& task = i % 2 == 0 ? first : second;
      task.Write(absl::StrCat("line ", i, "\n"));
      first.Pass(absl::Seconds(1));
      second.Pass(absl::Seconds(1));
    }
  }
};

TEST_F(LogPageTest, BothDirectionsReturnEveryLineOnceInOrder) {
  WriteLines(500);
  std::vector<std::string> expected;
  for (int i = 0; i < 500; ++i) expected.push_back(absl::StrCat("line ", i));

  std::vector<std::string> back;
  std::optional<LogCursor> cursor;
  for (;;) {
    const LogPage page = ReadOlderLines(Query(7), cursor);
    const auto texts = Texts(page);
    back.insert(back.begin(), texts.begin(), texts.end());
    if (page.at_start) break;
    ASSERT_LE(texts.size(), 7U);
    cursor = page.older;
  }
  EXPECT_EQ(back, expected);

  std::vector<std::string> forth;
  LogCursor next;
  for (;;) {
    const LogPage page = ReadNewerLines(Query(7), next);
    const auto texts = Texts(page);
    forth.insert(forth.end(), texts.begin(), texts.end());
    if (page.at_end) break;
    next = page.newer;
  }
  EXPECT_EQ(forth, expected);
}

TEST_F(LogPageTest, ContinuesAfterTheNewestPageWithoutGapOrRepetition) {
  LoggedTask task(directory_, kFirst);
  task.Write("one\ntwo\nthr");
  const LogPage tail = ReadOlderLines(Query(1), std::nullopt);
  EXPECT_THAT(Texts(tail), ElementsAre("two"));
  EXPECT_TRUE(tail.at_end);
  EXPECT_THAT(Texts(ReadNewerLines(Query(9), tail.newer)), IsEmpty());
  task.Write("ee\nfour\n");
  const LogPage next = ReadNewerLines(Query(9), tail.newer);
  EXPECT_THAT(Texts(next), ElementsAre("three", "four"));
  EXPECT_THAT(Texts(ReadNewerLines(Query(9), next.newer)), IsEmpty());
  EXPECT_THAT(Texts(ReadOlderLines(Query(9), tail.older)), ElementsAre("one"));
}

TEST_F(LogPageTest, ALastLineWithoutLineEndBelongsToACompleteLog) {
  LoggedTask task(directory_, kFirst);
  task.Write("one\nkilled he");
  LogPageQuery query = Query(9);
  EXPECT_THAT(Texts(ReadOlderLines(query, std::nullopt)), ElementsAre("one"));
  query.complete = true;
  EXPECT_THAT(Texts(ReadOlderLines(query, std::nullopt)), ElementsAre("one", "killed he"));
  EXPECT_THAT(Texts(ReadNewerLines(query, {})), ElementsAre("one", "killed he"));
}

TEST_F(LogPageTest, SearchesInStepsOfLimitedCost) {
  WriteLines(400);
  LogPageQuery query = Query(9);
  query.condition = [](const LogLine& line) { return absl::EndsWith(line.text, " 3"); };
  query.max_bytes = 500;
  std::vector<std::string> found;
  std::optional<LogCursor> cursor;
  int pages = 0;
  for (;; ++pages) {
    const LogPage page = ReadOlderLines(query, cursor);
    for (const LogLine& line : page.lines) found.push_back(line.text);
    if (page.at_start) break;
    cursor = page.older;
  }
  EXPECT_THAT(found, ElementsAre("line 3"));
  EXPECT_GT(pages, 5);
}

TEST_F(LogPageTest, SkipsSegmentsThatWereDeleted) {
  LogCursor stale;
  {
    LoggedTask task(directory_, kFirst, {.rotate_bytes = 100, .keep = 2});
    task.Write("first\n");
    stale = ReadNewerLines(Query(1), {}).newer;
    for (int i = 0; i < 100; ++i) task.Write(absl::StrCat("line ", i, "\n"));
  }
  EXPECT_THAT(Texts(ReadOlderLines(Query(9), stale)), IsEmpty());
  EXPECT_TRUE(ReadOlderLines(Query(9), stale).at_start);
  EXPECT_EQ(Texts(ReadNewerLines(Query(999), stale)).back(), "line 99");
}

TEST_F(LogPageTest, CursorsAreTextAndHostileOnesAreHarmless) {
  WriteLines(10);
  const LogCursor cursor = ReadOlderLines(Query(4), std::nullopt).older;
  const auto again = ParseLogCursor(FormatLogCursor(cursor));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, cursor);
  for (const char* text : {"worker:0", "worker:0@1", "worker:0@x.1", "@1.1", "../x:0@1.1.1",
                           "worker:0@-1.0", "worker:0@99999999999.0"}) {
    EXPECT_EQ(ParseLogCursor(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  const auto far = ParseLogCursor("worker:0@4294967295.18446744073709551615,ps:7@1.1");
  ASSERT_TRUE(far.ok()) << far.status();
  EXPECT_EQ(Texts(ReadOlderLines(Query(99), *far)).size(), 5U);
  EXPECT_EQ(Texts(ReadNewerLines(Query(99), *far)).size(), 5U);
}

}  // namespace
}  // namespace muster::supervise
