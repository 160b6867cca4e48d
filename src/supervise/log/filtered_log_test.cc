#include "supervise/log/filtered_log.h"

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "supervise/log/log_testing.h"

namespace muster::supervise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FilteredLogTest : public LogTest {
 protected:
  FilteredLogTest() : log_(directory_, task_) {}

  std::unique_ptr<FilteredLogStream> Open() {
    return std::make_unique<FilteredLogStream>(
        std::make_unique<MergedLogReader>(directory_, std::vector<cluster::TaskId>{task_}),
        [](const LogLine& line) { return absl::StrContains(line.text, "loss"); });
  }
  static std::vector<std::string> Texts(LogStream& stream) {
    std::vector<std::string> texts;
    stream.Acknowledge();
    while (const auto line = stream.Next()) texts.push_back(line->text);
    return texts;
  }

  const cluster::TaskId task_{"worker", 0};
  LoggedTask log_;
};

TEST_F(FilteredLogTest, ReturnsMatchingLinesAndFollows) {
  log_.Write("loss 3\nother\nloss 2\nmore");
  const auto stream = Open();
  EXPECT_THAT(Texts(*stream), ElementsAre("loss 3", "loss 2"));
  EXPECT_THAT(stream->TakePartials(), IsEmpty());
  log_.Write(" text\nloss 1\n");
  EXPECT_THAT(Texts(*stream), ElementsAre("loss 1"));
}

TEST_F(FilteredLogTest, TheTailCountsOnlyMatches) {
  log_.Write("loss 3\nloss 2\nother\nother\nother\n");
  auto stream = Open();
  stream->SeekTail(1);
  EXPECT_THAT(Texts(*stream), ElementsAre("loss 2"));
  stream = Open();
  stream->SeekTail(0);
  log_.Write("loss 1\n");
  EXPECT_THAT(Texts(*stream), ElementsAre("loss 1"));
}

}  // namespace
}  // namespace muster::supervise
