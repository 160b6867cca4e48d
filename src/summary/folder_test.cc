#include "summary/folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "summary/event_writer.h"

namespace muster::summary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class RunTest : public testing::Test {
 protected:
  // Writes a new file with a loss for each of the steps.
  std::unique_ptr<EventWriter> Write(int64_t begin, int64_t end, double value) {
    clock_.Advance(absl::Seconds(1));
    auto writer = EventWriter::Open(folder_, "chief", clock_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (int64_t step = begin; step < end; ++step) (*writer)->Scalar("loss", step, value);
    EXPECT_TRUE((*writer)->Flush().ok());
    return *std::move(writer);
  }

  RunWithProblems Read() {
    auto run = ReadRun(folder_);
    EXPECT_TRUE(run.ok()) << run.status();
    return *std::move(run);
  }

  static std::vector<std::pair<int64_t, float>> Points(const RunWithProblems& run,
                                                       const std::string& tag) {
    std::vector<std::pair<int64_t, float>> points;
    const auto found = run.run.scalars.find(tag);
    if (found == run.run.scalars.end()) return points;
    for (const auto& point : found->second) points.emplace_back(point.step, point.value);
    return points;
  }

  base::TempDir directory_;
  const std::string folder_ = directory_.path();
  base::FakeClock clock_;
};

TEST_F(RunTest, FilesAreReadInOrderOfCreation) {
  Write(1, 3, 0.5);
  Write(3, 5, 0.25);
  const auto run = Read();
  EXPECT_THAT(run.problems, IsEmpty());
  EXPECT_THAT(Points(run, "loss"),
              ElementsAre(Pair(1, 0.5), Pair(2, 0.5), Pair(3, 0.25), Pair(4, 0.25)));
}

TEST_F(RunTest, ARestartMakesLaterStepsVoid) {
  auto first = Write(1, 5, 0.5);
  const float values[] = {1};
  first->Histogram("weights", 2, values);
  first->Scalar("late", 4, 1);
  ASSERT_TRUE(first->Flush().ok());
  auto second = Write(0, 0, 0);
  second->Restarted(3);
  second->Scalar("loss", 3, 0.125);
  ASSERT_TRUE(second->Flush().ok());
  const auto run = Read();
  EXPECT_THAT(Points(run, "loss"), ElementsAre(Pair(1, 0.5), Pair(2, 0.5), Pair(3, 0.125)));
  EXPECT_THAT(run.run.scalars, SizeIs(1));  // "late" is gone
  EXPECT_THAT(run.run.histograms.at("weights"), SizeIs(1));
}

TEST_F(RunTest, TheLastGraphCounts) {
  auto writer = Write(0, 0, 0);
  const GraphNode a[] = {{"a", "Variable", {}, "", {}, {}}};
  const GraphNode b[] = {{"b", "Variable", {}, "", {}, {}}};
  writer->Graph(a);
  writer->Graph(b);
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_THAT(Read().run.graph_def, HasSubstr("b"));
}

TEST_F(RunTest, OneDamagedFileDoesNotHideTheOthers) {
  const std::string damaged = Write(1, 4, 1)->path();
  Write(4, 6, 2);
  auto bytes = *base::ReadFile(damaged);
  bytes[bytes.size() - 20] ^= 1;  // in the last record
  ASSERT_TRUE(base::ReplaceFile(damaged, bytes).ok());
  const auto run = Read();
  ASSERT_THAT(run.problems, SizeIs(1));
  EXPECT_THAT(std::string(run.problems[0].message()), HasSubstr(damaged));
  EXPECT_THAT(Points(run, "loss"), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(4, 2), Pair(5, 2)));
}

TEST_F(RunTest, OtherFilesAndFoldersAreLeftAlone) {
  Write(1, 2, 1);
  ASSERT_TRUE(base::ReplaceFile(folder_ + "/notes.txt", "x").ok());
  ASSERT_TRUE(base::MakeDirectories(folder_ + "/eval").ok());
  EXPECT_THAT(Read().problems, IsEmpty());
}

TEST_F(RunTest, APipeWithTheNameOfAnEventFileDoesNotHang) {
  Write(1, 2, 1);
  ASSERT_EQ(::mkfifo((folder_ + "/events.out.tfevents.9.x").c_str(), 0600), 0);
  const auto run = Read();
  ASSERT_THAT(run.problems, SizeIs(1));
  EXPECT_THAT(std::string(run.problems[0].message()), HasSubstr("not a regular file"));
  EXPECT_THAT(Points(run, "loss"), SizeIs(1));
}

TEST_F(RunTest, EmptyFolderIsEmptyAndMissingFolderIsAnError) {
  EXPECT_THAT(Read().run.scalars, IsEmpty());
  EXPECT_EQ(ReadRun(folder_ + "/missing").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::summary
