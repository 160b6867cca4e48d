#include "platform/vertex/path_rewrite.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::vertex {
namespace {

using ::testing::HasSubstr;

TEST(VertexPaths, PathsInTheWorkingDirectoryMoveWithIt) {
  job::JobSpec spec;
  spec.train = {
      {"data", {{"path", "/w/data/mnist"}}}, {"model", "/w/m.pt"}, {"steps", 3}, {"name", "/wide"}};
  spec.roles = {{.name = "worker", .working_dir = "/w/sub"}};
  const job::JobSpec moved = MovePaths(spec, "/w", "/tmp/x");
  EXPECT_EQ(moved.train["data"]["path"], "/tmp/x/data/mnist");
  EXPECT_EQ(moved.train["model"], "/tmp/x/m.pt");
  EXPECT_EQ(moved.train["name"], "/wide");
  EXPECT_EQ(moved.roles[0].working_dir, "/tmp/x/sub");
}

TEST(VertexPaths, PathsThatAreNotSentAreErrorsWithARemedy) {
  job::JobSpec spec;
  spec.train = {{"data", {{"path", "/w/data"}}}, {"model", "cnn"}};
  const auto all = [](absl::string_view path) { return path == "data"; };
  const auto none = [](absl::string_view) { return false; };
  EXPECT_TRUE(CheckPaths(spec, "/w", all).ok());
  EXPECT_THAT(std::string(CheckPaths(spec, "/w", none).message()),
              AllOf(HasSubstr(".gitignore"), HasSubstr("--dataset")));
  EXPECT_THAT(std::string(CheckPaths(spec, "/elsewhere", all).message()),
              HasSubstr("only this machine has"));
  spec.train["data"]["path"] = "gs://b/data";
  EXPECT_TRUE(CheckPaths(spec, "/w", none).ok());
}

}  // namespace
}  // namespace muster::vertex
