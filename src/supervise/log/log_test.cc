// Writing and reading of logs. log_fault_test.cc covers full disks and rotation under load.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "supervise/log/log_testing.h"

namespace muster::supervise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const cluster::TaskId kTask{"worker", 1};

TEST_F(LogTest, KeepsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes.push_back(static_cast<char>(i * 7 + i / 251));
  LoggedTask task(directory_, kTask);
  task.Write(bytes);
  EXPECT_EQ(ContentOf(kTask), bytes);
  EXPECT_EQ(task.writer().written_bytes(), 300'000);
  EXPECT_EQ(task.writer().lost_bytes(), 0);
}

TEST_F(LogTest, ReportsAnEmptyAndAnEndedPipe) {
  LoggedTask task(directory_, kTask);
  EXPECT_EQ(task.writer().Drain(task.pipe(), task.now()), LogWriter::Outcome::kEmpty);
  task.Close();
  EXPECT_EQ(task.writer().Drain(task.pipe(), task.now()), LogWriter::Outcome::kEnd);
}

TEST_F(LogTest, ReadsWholeLinesAndThePartialOneWhenAsked) {
  LoggedTask task(directory_, kTask);
  LogReader reader(directory_, kTask);
  EXPECT_THAT(AllLines(reader), IsEmpty());
  task.Write("one\ntw");
  EXPECT_THAT(Lines(reader), ElementsAre("one"));
  EXPECT_THAT(Lines(reader), IsEmpty());
  task.Write("o\n\nfour");
  EXPECT_THAT(Lines(reader), ElementsAre("two", ""));
  EXPECT_EQ(reader.TakePartial()->text, "four");
  EXPECT_FALSE(reader.TakePartial().has_value());
  task.Write("teen\n");
  EXPECT_THAT(Lines(reader), ElementsAre("teen"));
}

TEST_F(LogTest, ALogThatDoesNotExistYetIsEmpty) {
  LogReader reader(directory_, kTask);
  reader.SeekTail(5);
  EXPECT_THAT(AllLines(reader), IsEmpty());
  LoggedTask task(directory_, kTask);
  task.Write("now\n");
  EXPECT_THAT(AllLines(reader), ElementsAre("now"));
}

TEST_F(LogTest, ReturnsTheLastVersionOfARewrittenLine) {
  LoggedTask task(directory_, kTask);
  task.Write("1%\r50%\r100%\nwindows\r\n\r\n\rend\n 7%\r 8%\r");
  LogReader reader(directory_, kTask);
  EXPECT_THAT(AllLines(reader), ElementsAre("100%", "windows", "", "end", " 8% (partial)"));
  EXPECT_EQ(ContentOf(kTask), "1%\r50%\r100%\nwindows\r\n\r\n\rend\n 7%\r 8%\r");
}

TEST_F(LogTest, ZeroAndBrokenBytesPassThrough) {
  LoggedTask task(directory_, kTask);
  const std::string odd("a\0b\xff\xc3(\x80", 7);
  task.Write(odd + "\nnext\n");
  LogReader reader(directory_, kTask);
  EXPECT_THAT(Lines(reader), ElementsAre(odd, "next"));
}

TEST_F(LogTest, AVeryLongLineComesInPieces) {
  constexpr size_t kPiece = 64 << 10;
  LoggedTask task(directory_, kTask);
  task.Write(std::string(kPiece, 'a') + "\n" + std::string(3 * kPiece + 5, 'b') + "\nend\n");
  LogReader reader(directory_, kTask);
  EXPECT_THAT(Lines(reader),
              ElementsAre(std::string(kPiece, 'a'), std::string(kPiece, 'b'),
                          std::string(kPiece, 'b'), std::string(kPiece, 'b'), "bbbbb", "end"));
}

TEST_F(LogTest, EachLineHasItsAttemptAndItsTime) {
  LoggedTask task(directory_, kTask);
  const absl::Time start = task.now();
  task.Write("first\n");
  task.Pass(absl::Seconds(10));
  task.writer().BeginAttempt(1);
  task.Write("second\n");
  task.Pass(absl::Milliseconds(1));
  task.writer().BeginAttempt(2);
  task.Write("third\n");
  LogReader reader(directory_, kTask);
  for (const auto& [text, attempt, seconds] :
       {std::tuple{"first", 0, 0.0}, {"second", 1, 10.0}, {"third", 2, 10.001}}) {
    const auto line = reader.Next();
    EXPECT_EQ(line->text, text);
    EXPECT_EQ(line->attempt, attempt);
    EXPECT_EQ(line->time, start + absl::Seconds(seconds));
  }
}

TEST_F(LogTest, PiecesHaveTimesAndCanBeResumedAnywhere) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 10, .keep = 100});
  std::string written;
  for (int i = 0; i < 40; ++i) {
    if (i == 20) task.writer().BeginAttempt(1);
    const std::string text = absl::StrCat("line ", i, i % 3 == 0 ? "\n" : " ");
    task.Write(text);
    task.Pass(absl::Milliseconds(150));
    written += text;
  }
  // Interrupts the reader at every position.
  for (size_t stop = 0; stop < 60; ++stop) {
    auto reader = std::make_unique<LogReader>(directory_, kTask);
    std::string read;
    LogPosition place;
    absl::Time last = absl::InfinitePast();
    for (size_t i = 0;; ++i) {
      if (i == stop) {
        reader = std::make_unique<LogReader>(directory_, kTask);
        reader->Seek(place);
      }
      const auto piece = reader->NextPiece();
      if (!piece.has_value()) break;
      EXPECT_EQ(piece->attempt, read.size() < written.find("line 20") ? 0 : 1);
      EXPECT_GE(piece->time, last);
      last = piece->time;
      read += piece->bytes;
      place = piece->next;
    }
    EXPECT_EQ(read, written);
    // The next segment already exists and is empty.
    EXPECT_EQ(place.segment + 1, task.writer().segment());
    EXPECT_EQ(task.writer().offset(), 0);
  }
}

TEST_F(LogTest, AWriterContinuesAnExistingLog) {
  const LogWriter::Options options{.rotate_bytes = 8, .keep = 100};
  LoggedTask(directory_, kTask, options).Write("aaaa\nbbbb\ncc");
  LoggedTask(directory_, kTask, options).Write("cc\ndddd\n");
  LogReader reader(directory_, kTask);
  EXPECT_THAT(AllLines(reader), ElementsAre("aaaa", "bbbb", "cccc", "dddd"));
}

TEST_F(LogTest, LinesCrossSegments) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 10, .keep = 100});
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) lines.push_back(absl::StrCat("line ", i, std::string(i % 13, 'x')));
  LogReader follower(directory_, kTask);
  std::vector<std::string> followed;
  for (const std::string& line : lines) {
    task.Write(line + "\n");
    for (std::string& text : Lines(follower)) followed.push_back(std::move(text));
  }
  EXPECT_EQ(followed, lines);
  LogReader reader(directory_, kTask);
  EXPECT_EQ(AllLines(reader), lines);
  EXPECT_GT(CurrentSegment(directory_, LogStem(kTask)), 30u);
}

TEST_F(LogTest, TimesStayRightBeyondALineThatCrossesSegments) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 10, .keep = 100});
  task.Write("1234567\nab");
  const absl::Time first = task.now();
  task.Pass(absl::Seconds(60));
  task.writer().BeginAttempt(1);
  task.Write("cd\n99\nx");  // one read returns the rest of "abcd" and an incomplete line
  LogReader reader(directory_, kTask);
  EXPECT_EQ(reader.Next()->time, first);
  EXPECT_EQ(reader.Next()->time, first);  // the time of its first byte
  const auto line = reader.Next();
  EXPECT_EQ(line->text, "99");
  EXPECT_EQ(line->time, first + absl::Seconds(60));
  EXPECT_EQ(line->attempt, 1);
}

TEST_F(LogTest, DroppedSegmentsAreSkipped) {
  LogReader from_start(directory_, kTask);
  LoggedTask task(directory_, kTask, {.rotate_bytes = 10, .keep = 2});
  for (int i = 0; i < 10; ++i) task.Write(absl::StrCat("line ", i, "xxx\n"));  // 10 bytes each
  EXPECT_EQ(ContentOf(kTask), "line 8xxx\nline 9xxx\n");
  LogReader reader(directory_, kTask);
  EXPECT_THAT(Lines(reader), ElementsAre("line 8xxx", "line 9xxx"));
  EXPECT_THAT(Lines(from_start), ElementsAre("line 8xxx", "line 9xxx"));
}

TEST_F(LogTest, ALineCutByADroppedSegmentIsNotGluedToAnother) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 10, .keep = 1});
  LogReader reader(directory_, kTask);
  task.Write("whole\ncut");
  EXPECT_THAT(Lines(reader), ElementsAre("whole"));
  task.Write("123456\n" + std::string(9, 'x') + "\n" + std::string(9, 'y') + "\n");
  EXPECT_THAT(Lines(reader), ElementsAre("cut1", "xxxxx", std::string(9, 'y')));
}

TEST_F(LogTest, AFollowerReadsToTheEndASegmentThatIsDroppedMeanwhile) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 20, .keep = 1});
  LogReader reader(directory_, kTask);
  task.Write("a\n");
  EXPECT_THAT(Lines(reader), ElementsAre("a"));  // the reader has opened the segment
  task.Write("bbbbbbbbbbbbbbbbb\n" + std::string(19, 'c') + "\n" + std::string(19, 'd') + "\ne\n");
  EXPECT_THAT(Lines(reader), ElementsAre(std::string(17, 'b'), std::string(19, 'd'), "e"));
}

class SeekTailTest : public LogTest, public testing::WithParamInterface<int64_t> {};

TEST_P(SeekTailTest, StartsAtTheLastLines) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = GetParam(), .keep = 100});
  task.Write("one\ntwo\nthree\nfour\n");
  const auto tail = [&](int count) {
    LogReader reader(directory_, kTask);
    reader.SeekTail(count);
    return AllLines(reader);
  };
  EXPECT_THAT(tail(0), IsEmpty());
  EXPECT_THAT(tail(1), ElementsAre("four"));
  EXPECT_THAT(tail(3), ElementsAre("two", "three", "four"));
  EXPECT_THAT(tail(4), ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(tail(100), ElementsAre("one", "two", "three", "four"));
  task.Write("unfin");
  EXPECT_THAT(tail(0), IsEmpty());
  EXPECT_THAT(tail(1), ElementsAre("unfin (partial)"));
  EXPECT_THAT(tail(2), ElementsAre("four", "unfin (partial)"));

  LogReader follower(directory_, kTask);
  follower.SeekTail(1);
  task.Write("ished\nmore\n");
  EXPECT_THAT(AllLines(follower), ElementsAre("unfinished", "more"));
}

// One segment, several segments, and a border right at the end of a line.
INSTANTIATE_TEST_SUITE_P(Segments, SeekTailTest, testing::Values(1 << 20, 1, 3, 4, 5, 7, 19));

TEST_F(LogTest, SeekTailReadsBackThroughManyBlocks) {
  LoggedTask task(directory_, kTask);
  std::vector<std::string> lines;
  for (int i = 0; i < 50'000; ++i) lines.push_back(absl::StrCat("line number ", i));
  task.Write(absl::StrJoin(lines, "\n") + "\n");
  LogReader reader(directory_, kTask);
  reader.SeekTail(40'000);
  EXPECT_EQ(Lines(reader), std::vector<std::string>(lines.begin() + 10'000, lines.end()));
}

TEST_F(LogTest, SeekTimeStartsAtTheFirstRecentLine) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 16, .keep = 100});
  const absl::Time start = task.now();
  for (int i = 0; i < 10; ++i) {
    task.Write(absl::StrCat("second ", i, "\n"));
    task.Pass(absl::Seconds(1));
  }
  const auto since = [&](absl::Duration after) {
    LogReader reader(directory_, kTask);
    reader.SeekTime(start + after);
    return Lines(reader);
  };
  EXPECT_THAT(since(-absl::Hours(1)), SizeIs(10));
  EXPECT_THAT(since(absl::Seconds(7)), ElementsAre("second 7", "second 8", "second 9"));
  EXPECT_THAT(since(absl::Seconds(7.5)), ElementsAre("second 8", "second 9"));
  EXPECT_THAT(since(absl::Hours(1)), IsEmpty());
}

TEST_F(LogTest, SeekTimeDoesNotBeginInTheMiddleOfALine) {
  LoggedTask task(directory_, kTask);
  const absl::Time start = task.now();
  task.Write("half a ");
  task.Pass(absl::Seconds(5));
  task.Write("line\nwhole\n");
  LogReader reader(directory_, kTask);
  reader.SeekTime(start + absl::Seconds(3));
  EXPECT_THAT(Lines(reader), ElementsAre("whole"));
}

TEST_F(LogTest, SeekTimeToADroppedSegmentStartsAtTheOldestLine) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 20, .keep = 1});
  const absl::Time start = task.now();
  for (int i = 0; i < 6; ++i) {
    task.Write(absl::StrCat("line ", i, "xxx\n"));
    task.Pass(absl::Seconds(1));
  }
  LogReader all(directory_, kTask);
  LogReader reader(directory_, kTask);
  reader.SeekTime(start + absl::Seconds(1));  // the record points into the middle of its segment
  EXPECT_EQ(Lines(reader), Lines(all));
}

TEST_F(LogTest, MergesTasksInOrderOfTime) {
  LoggedTask a(directory_, {"chief", 0});
  LoggedTask b(directory_, {"worker", 0});
  for (int i = 0; i < 4; ++i) {
    a.Write(absl::StrCat("a", i, "\n"));
    a.Pass(absl::Seconds(2));
    b.Pass(absl::Seconds(1));
    b.Write(absl::StrCat("b", i, "\n"));
    b.Pass(absl::Seconds(1));
  }
  a.Write("rest of a");
  MergedLogReader reader(directory_, {{"chief", 0}, {"worker", 0}});
  std::vector<std::string> texts;
  while (auto line = reader.Next()) texts.push_back(line->text);
  EXPECT_THAT(texts, ElementsAre("a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"));
  ASSERT_THAT(reader.TakePartials(), SizeIs(1));
  EXPECT_THAT(reader.TakePartials(), IsEmpty());
}

TEST_F(LogTest, MergedTailCountsTheLinesOfAllTasks) {
  LoggedTask a(directory_, {"chief", 0});
  LoggedTask b(directory_, {"worker", 0});
  a.Write("old 1\nold 2\nold 3\n");
  b.Pass(absl::Seconds(9));
  b.Write("new 1\nnew 2\n");
  MergedLogReader reader(directory_, {{"chief", 0}, {"worker", 0}});
  reader.SeekTail(3);
  b.Write("newest\n");
  reader.Acknowledge();
  std::vector<std::string> texts;
  while (auto line = reader.Next()) texts.push_back(line->text);
  EXPECT_THAT(texts, ElementsAre("old 3", "new 1", "new 2", "newest"));
}

TEST_F(LogTest, AMergedReaderTakesATaskThatJoinsLater) {
  LoggedTask a(directory_, {"chief", 0});
  a.Write("a\n");
  MergedLogReader reader(directory_, {{"chief", 0}});
  EXPECT_EQ(reader.Next()->text, "a");
  LoggedTask b(directory_, {"worker", 0});
  b.Write("b\n");
  reader.Acknowledge();
  reader.AddTask({"worker", 0});
  reader.AddTask({"chief", 0});
  EXPECT_EQ(reader.Next()->text, "b");
  EXPECT_FALSE(reader.Next().has_value());
}

TEST_F(LogTest, LastLinesArePrintableAndAtMostAsManyAsWanted) {
  LoggedTask task(directory_, kTask);
  task.Write("1\n2\n3\nbad \xff \x1b[2J\nlast");
  EXPECT_THAT(LastLines(directory_, kTask, 2), ElementsAre("bad \xEF\xBF\xBD ^[[2J", "last"));
  EXPECT_THAT(LastLines(directory_, {"nobody", 0}, 2), IsEmpty());
}

}  // namespace
}  // namespace muster::supervise
