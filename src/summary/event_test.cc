// Checks the writer with EventReader and with an independent reader.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "summary/event_reader.h"
#include "summary/event_writer.h"

namespace muster::summary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class EventTest : public testing::Test {
 protected:
  std::unique_ptr<EventWriter> OpenWriter(absl::string_view suffix = "test") {
    auto writer = EventWriter::Open(folder_, suffix, clock_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  static std::vector<Event> Read(const std::string& path) {
    auto reader = EventReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<Event> events;
    for (;;) {
      auto event = reader->Next();
      EXPECT_TRUE(event.ok()) << event.status();
      if (!event.ok() || !event->has_value()) return events;
      events.push_back(**std::move(event));
    }
  }

  // Returns one line of JSON per event, from tests/tfevents.py.
  static std::vector<std::string> ReadInPython(const std::string& path) {
    const std::string command =
        absl::StrCat("/usr/bin/python3 -B " MUSTER_TESTS_DIR "/tfevents.py '", path, "' 2>&1");
    FILE* pipe = ::popen(command.c_str(), "r");
    auto text = base::ReadAll(::fileno(pipe));
    EXPECT_EQ(::pclose(pipe), 0) << *text;
    return absl::StrSplit(*text, '\n', absl::SkipEmpty());
  }

  base::TempDir directory_;
  const std::string folder_ = directory_.path() + "/runs/a";
  base::FakeClock clock_{absl::FromUnixMillis(1'700'000'000'250)};
};

TEST_F(EventTest, AFileIsNamedAsTensorBoardExpectsAndBeginsWithItsVersion) {
  const std::string path = OpenWriter()->path();
  const std::string name = std::filesystem::path(path).filename().string();
  EXPECT_TRUE(absl::StartsWith(name, "events.out.tfevents.1700000000.")) << name;
  EXPECT_TRUE(absl::EndsWith(name, ".test")) << name;
  const auto events = Read(path);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_THAT(ReadInPython(path),
              ElementsAre(R"({"wall_time": 1700000000.25, "file_version": "brain.Event:2"})"));
}

TEST_F(EventTest, ScalarsAreReadBack) {
  auto writer = OpenWriter();
  writer->Scalar("loss", 10, 0.25);
  clock_.Advance(absl::Seconds(2));
  writer->Scalar("loss", 20, -3e300);  // beyond single precision
  writer->Scalar("loss", 30, std::nan(""));
  ASSERT_TRUE(writer->Flush().ok());
  const auto events = Read(writer->path());
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_EQ(events[1].step, 10);
  EXPECT_EQ(events[1].time, absl::FromUnixMillis(1'700'000'000'250));
  ASSERT_THAT(events[1].scalars, SizeIs(1));
  EXPECT_EQ(events[1].scalars[0].tag, "loss");
  EXPECT_EQ(events[1].scalars[0].value, 0.25F);
  EXPECT_EQ(events[2].time, absl::FromUnixMillis(1'700'000'002'250));
  EXPECT_EQ(events[2].scalars[0].value, -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(events[3].scalars[0].value));
  const auto lines = ReadInPython(writer->path());
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(lines[1], R"({"wall_time": 1700000000.25, "step": 10, )"
                      R"("summary": {"value": [{"tag": "loss", "simple_value": 0.25}]}})");
}

TEST_F(EventTest, HistogramsAreReadBackAndNonFiniteValuesAreAScalar) {
  auto writer = OpenWriter();
  const float values[] = {0, 0, 1, std::numeric_limits<float>::infinity()};
  writer->Histogram("conv1/weight", 7, values);
  ASSERT_TRUE(writer->Flush().ok());
  const auto events = Read(writer->path());
  ASSERT_THAT(events, SizeIs(2));
  ASSERT_THAT(events[1].distributions, SizeIs(1));
  EXPECT_EQ(events[1].distributions[0].tag, "conv1/weight");
  int64_t non_finite = 0;
  EXPECT_EQ(events[1].distributions[0].histogram, MakeHistogram(values, non_finite));
  ASSERT_THAT(events[1].scalars, SizeIs(1));
  EXPECT_EQ(events[1].scalars[0].tag, "conv1/weight/non_finite");
  EXPECT_EQ(events[1].scalars[0].value, 1);
  const auto lines = ReadInPython(writer->path());
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[1], HasSubstr(R"("max": 1.0, "num": 3.0, "sum": 1.0, "sum_squares": 1.0)"));
  EXPECT_THAT(lines[1], HasSubstr(R"("bucket": [0.0, 2.0, 0.0, 1.0, 0.0])"));
}

TEST_F(EventTest, TheGraphShowsWhereEachVariableIs) {
  auto writer = OpenWriter();
  const GraphNode nodes[] = {
      {"conv1/weight",
       "Variable",
       {},
       "/job:ps/task:1",
       base::DType::kFloat32,
       base::Shape{32, 1, 5, 5}},
      {"conv1", "Conv2d", {"conv1/weight", "input"}, "/job:worker/task:0", {}, {}},
      {"steps", "Variable", {}, "", base::DType::kInt64, base::Shape{}},
  };
  writer->Graph(nodes);
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_FALSE(Read(writer->path())[1].graph_def.empty());
  const auto lines = ReadInPython(writer->path());
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[1], HasSubstr(R"("name": "conv1/weight", "op": "Variable", )"
                                  R"("device": "/job:ps/task:1")"));
  EXPECT_THAT(lines[1], HasSubstr(R"({"key": "shape", "value": {"shape": [32, 1, 5, 5]}})"));
  EXPECT_THAT(
      lines[1],
      HasSubstr(R"({"key": "_output_shapes", "value": {"list": {"shape": [[32, 1, 5, 5]]}}})"));
  EXPECT_THAT(lines[1], HasSubstr(R"({"key": "dtype", "value": {"type": 1}})"));
  EXPECT_THAT(lines[1], HasSubstr(R"("name": "conv1", "op": "Conv2d", )"
                                  R"("input": ["conv1/weight", "input"])"));
  EXPECT_THAT(lines[1], HasSubstr(R"({"key": "dtype", "value": {"type": 9}})"));
}

TEST_F(EventTest, ARestartIsASessionStart) {
  auto writer = OpenWriter();
  writer->Restarted(501);
  ASSERT_TRUE(writer->Flush().ok());
  const auto events = Read(writer->path());
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_TRUE(events[1].restarted);
  EXPECT_EQ(events[1].step, 501);
  EXPECT_EQ(ReadInPython(writer->path())[1],
            R"({"wall_time": 1700000000.25, "step": 501, "session_log": {"status": 1}})");
}

TEST_F(EventTest, InvalidUtf8InNamesIsReplaced) {
  auto writer = OpenWriter();
  writer->Scalar("a\xff\xfe", 1, 1);
  const GraphNode nodes[] = {{"b\xff", "c\xff", {"d\xff"}, "e\xff", {}, {}}};
  writer->Graph(nodes);
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_THAT(ReadInPython(writer->path()), SizeIs(3));
  EXPECT_THAT(Read(writer->path()), SizeIs(3));
}

TEST_F(EventTest, WritersOfTheSameSecondGetFilesInOrder) {
  const std::string first = OpenWriter()->path();
  const std::string second = OpenWriter()->path();
  const std::string third = OpenWriter()->path();
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST_F(EventTest, DestructorFlushes) {
  auto writer = OpenWriter("");
  writer->Scalar("loss", 1, 1);
  const std::string path = writer->path();
  EXPECT_THAT(Read(path), SizeIs(1));
  writer.reset();
  EXPECT_THAT(Read(path), SizeIs(2));
}

TEST_F(EventTest, ManyEventsDoNotWaitForAFlush) {
  auto writer = OpenWriter();
  for (int i = 0; i < 20'000; ++i) writer->Scalar("loss", i, i);
  EXPECT_GT(Read(writer->path()).size(), 10'000U);
}

TEST_F(EventTest, ThreadsMayWriteConcurrently) {
  auto writer = OpenWriter();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&writer, t] {
        for (int i = 0; i < 1000; ++i) {
          writer->Scalar(absl::StrCat("tag", t), i, i);
          if (i % 100 == 0) {
            EXPECT_TRUE(writer->Flush().ok());
          }
        }
      });
    }
  }
  ASSERT_TRUE(writer->Flush().ok());
  std::map<std::string, int64_t> next;
  for (const Event& event : Read(writer->path())) {
    for (const Event::Scalar& scalar : event.scalars) EXPECT_EQ(event.step, next[scalar.tag]++);
  }
  EXPECT_THAT(next, SizeIs(4));
  for (const auto& [tag, count] : next) EXPECT_EQ(count, 1000) << tag;
}

TEST_F(EventTest, AReaderFollowsAFileThatGrows) {
  auto writer = OpenWriter();
  auto reader = EventReader::Open(writer->path());
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader->Next()).has_value());
  EXPECT_FALSE((*reader->Next()).has_value());
  for (int step = 1; step <= 3; ++step) {
    writer->Scalar("loss", step, 1);
    ASSERT_TRUE(writer->Flush().ok());
    const auto event = reader->Next();
    ASSERT_TRUE(event.ok() && event->has_value());
    EXPECT_EQ((*event)->step, step);
    EXPECT_FALSE((*reader->Next()).has_value());
  }
}

TEST_F(EventTest, ASuffixIsNotAPath) {
  const auto writer = EventWriter::Open(folder_, "../x", clock_);
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::summary
