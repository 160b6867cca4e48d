#include "cli/data/files.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "cli/data/sources.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Has these files, and counts what it was asked for.
class FakeSource : public DataSource {
 public:
  FakeSource(std::string name, std::map<std::string, absl::StatusOr<std::string>> files)
      : name_(std::move(name)), files_(std::move(files)) {}

  std::string name() const override { return name_; }
  absl::StatusOr<std::string> Get(const std::string& file, int64_t max_bytes) override {
    const auto found = files_.find(file);
    if (found == files_.end()) return absl::NotFoundError("not there");
    if (found->second.ok() && static_cast<int64_t>(found->second->size()) > max_bytes) {
      return absl::OutOfRangeError("too large");
    }
    return found->second;
  }

 private:
  std::string name_;
  std::map<std::string, absl::StatusOr<std::string>> files_;
};

PublishedFile Published(const std::string& name, const std::string& content) {
  return {name, static_cast<int64_t>(content.size()), base::Sha256Hex(content)};
}

class DataFilesTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return base::JoinPath(to_, name); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(to_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  template <typename... Sources>
  static DataSources Of(Sources... sources) {
    DataSources result;
    (result.push_back(std::make_unique<FakeSource>(std::move(sources))), ...);
    return result;
  }

  base::TempDir dir_;
  std::string to_ = dir_.path() + "/new/data";
  std::vector<PublishedFile> files_ = {Published("a", "alpha"), Published("b", "beta")};
};

TEST_F(DataFilesTest, FetchesOnlyOnce) {
  const auto sources = Of(FakeSource("s", {{"a", "alpha"}, {"b", "beta"}}));
  const auto result = FetchFiles(files_, to_, sources);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->fetched, ElementsAre("a", "b"));
  EXPECT_EQ(result->source, "s");
  EXPECT_THAT(result->failures, IsEmpty());
  EXPECT_EQ(base::ReadFile(Path("b")).value(), "beta");
  EXPECT_TRUE(AllAreIntact(files_, to_));
  EXPECT_THAT(FetchFiles(files_, to_, Of())->fetched, IsEmpty());
  EXPECT_THAT(Names(), ElementsAre("a", "b"));
}

TEST_F(DataFilesTest, FetchesOnlyDamagedFilesAgain) {
  ASSERT_TRUE(base::MakeDirectories(to_).ok());
  ASSERT_TRUE(base::ReplaceFile(Path("a"), "alpha").ok());
  ASSERT_TRUE(base::ReplaceFile(Path("b"), "bet").ok());
  EXPECT_FALSE(AllAreIntact(files_, to_));
  const auto result = FetchFiles(files_, to_, Of(FakeSource("s", {{"b", "beta"}})));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->fetched, ElementsAre("b"));
  EXPECT_EQ(base::ReadFile(Path("b")).value(), "beta");
}

TEST_F(DataFilesTest, TheNextSourceContinuesAfterAFailure) {
  const auto result = FetchFiles(files_, to_,
                                 Of(FakeSource("s", {{"a", "alpha"}, {"b", "bata"}}),
                                    FakeSource("t", {{"b", absl::UnavailableError("asleep")}}),
                                    FakeSource("u", {{"b", "beta"}})));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->source, "u");
  ASSERT_EQ(result->failures.size(), 2u);
  EXPECT_THAT(result->failures[0], HasSubstr("s: b: the content is not the published one"));
  EXPECT_EQ(result->failures[1], "t: b: asleep");
}

TEST_F(DataFilesTest, ReportsTheFailureOfEverySource) {
  const auto result = FetchFiles(
      files_, to_, Of(FakeSource("s", {{"a", "alpha"}}), FakeSource("t", {{"b", "bita"}})));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(result.status().message(), HasSubstr("s: b: not there\nt: b: the content is not"));
  EXPECT_THAT(Names(), ElementsAre("a"));  // right files are kept; wrong ones are not written
}

TEST_F(DataFilesTest, StopsOnInterrupt) {
  const auto result = FetchFiles(
      files_, to_,
      Of(FakeSource("s", {{"a", absl::CancelledError("interrupted")}}), FakeSource("t", {})));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(to_));
}

TEST_F(DataFilesTest, AWriteErrorIsNotAFailureOfTheSource) {
  const std::string large(100'000, 'x');
  const std::vector<PublishedFile> files = {Published("large", large)};
  const auto fetch = [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = FetchFiles(files, to_, Of(FakeSource("s", {{"large", large}})));
    const bool said = !result.ok() && !absl::IsUnavailable(result.status()) &&
                      absl::StrContains(result.status().message(), Path("large"));
    ::_exit(said && Names().empty() ? 0 : 1);
  };
  EXPECT_EXIT(fetch(), testing::ExitedWithCode(0), "");
}

TEST_F(DataFilesTest, AFolderIsASource) {
  const std::string from = dir_.path() + "/from";
  ASSERT_TRUE(base::MakeDirectories(from).ok());
  ASSERT_TRUE(base::ReplaceFile(base::JoinPath(from, "a"), "alpha").ok());
  const auto source = FolderSource(from);
  EXPECT_EQ(source->Get("a", 5).value(), "alpha");
  EXPECT_FALSE(source->Get("a", 4).ok());
  EXPECT_EQ(source->Get("b", 5).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(base::ReplaceFile(base::JoinPath(from, "b.gz"), "not gzip").ok());
  EXPECT_EQ(source->Get("b", 50).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::cli
