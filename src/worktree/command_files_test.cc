#include "worktree/command_files.h"

#include <string>
#include <vector>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::worktree {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CommandFiles : public ::testing::Test {
 protected:
  CommandFiles() {
    for (const char* name : {"train.py", "python", "my file.py", "conf/a.yaml", "trainer/task.py",
                             "pkg/__main__.py", "sub/own.py", "data/x.csv"}) {
      const std::string path = base::JoinPath(root_.path(), name);
      EXPECT_TRUE(base::MakeDirectories(base::FolderOf(path)).ok());
      EXPECT_TRUE(base::ReplaceFile(path, "").ok());
    }
  }

  std::vector<std::string> Named(const std::vector<std::string>& command,
                                 const std::string& working_dir = "") const {
    return FilesNamedBy({.name = "worker", .command = command, .working_dir = working_dir},
                        root_.path());
  }
  std::vector<std::string> InLine(const std::string& line) const {
    return Named({"/bin/sh", "-c", line});
  }

  const base::TempDir root_;
};

TEST_F(CommandFiles, WordsThatAreRelativePathsOfFiles) {
  EXPECT_THAT(Named({"python", "train.py", "--steps", "10"}), ElementsAre("train.py"));
  EXPECT_THAT(Named({"python", "./train.py", "train.py"}), ElementsAre("train.py"));
  EXPECT_THAT(Named({"run", "--config=conf/a.yaml"}), ElementsAre("conf/a.yaml"));
  EXPECT_THAT(Named({"./train.py"}), ElementsAre("train.py"));
  EXPECT_THAT(Named({"python", "missing.py", "/train.py", "gs://b/train.py"}), IsEmpty());
  EXPECT_THAT(Named({"python", "../train.py"}), IsEmpty());
}

TEST_F(CommandFiles, AProgramIsLookedUpInPath) {
  EXPECT_THAT(Named({"python", "-c", "pass"}), IsEmpty());
  EXPECT_THAT(InLine("true && python -V; python"), IsEmpty());
  EXPECT_THAT(Named({"env", "X=1", "python", "-V"}), IsEmpty());
  EXPECT_THAT(InLine("./python -V"), ElementsAre("python"));
}

TEST_F(CommandFiles, LinesForAShell) {
  EXPECT_THAT(InLine("exec python train.py > out 2>&1"), ElementsAre("train.py"));
  EXPECT_THAT(InLine("python 'my file.py' | tee log"), ElementsAre("my file.py"));
  EXPECT_THAT(InLine("python my\\ file.py"), ElementsAre("my file.py"));
  EXPECT_THAT(InLine("python my file.py"), IsEmpty());
  EXPECT_THAT(InLine("X=conf/a.yaml python \"train.py\""), ElementsAre("conf/a.yaml", "train.py"));
  EXPECT_THAT(Named({"bash", "-ec", "python train.py"}), ElementsAre("train.py"));
  EXPECT_THAT(InLine("python \"unfinished"), IsEmpty());
}

TEST_F(CommandFiles, ModulesAndFolders) {
  EXPECT_THAT(Named({"python", "-m", "trainer.task"}), ElementsAre("trainer/task.py"));
  EXPECT_THAT(Named({"python", "-m", "pkg"}), ElementsAre("pkg/__main__.py"));
  EXPECT_THAT(Named({"python", "-m", "torch.distributed.run"}), IsEmpty());
  // A word without a slash may be a name as well.
  EXPECT_THAT(Named({"serve", "data"}), IsEmpty());
  EXPECT_THAT(Named({"serve", "data/"}), ElementsAre("data"));
  EXPECT_THAT(InLine("cd sub && python own.py"), ElementsAre("sub"));
}

TEST_F(CommandFiles, PathsAreRelativeToTheFolderOfTheRole) {
  EXPECT_THAT(Named({"python", "own.py"}, "sub"), ElementsAre("sub/own.py"));
  EXPECT_THAT(Named({"python", "../train.py"}, "sub"), ElementsAre("train.py"));
  EXPECT_THAT(Named({"python", "own.py"}, base::JoinPath(root_.path(), "sub")),
              ElementsAre("sub/own.py"));
}

TEST_F(CommandFiles, TheFolderOfARole) {
  const auto below = [this](const std::string& folder) {
    return FolderBelow(root_.path(), {.name = "worker", .working_dir = folder});
  };
  EXPECT_EQ(below(""), "");
  EXPECT_EQ(below("sub/"), "sub");
  EXPECT_EQ(below(root_.path()), "");
  EXPECT_EQ(below(base::JoinPath(root_.path(), "sub")), "sub");
  EXPECT_EQ(below("/app"), std::nullopt);
  EXPECT_EQ(below(".."), std::nullopt);
  EXPECT_EQ(FolderBelow("/", {.name = "worker", .working_dir = "/app"}), "app");
}

TEST_F(CommandFiles, AbsolutePathsOfThisMachine) {
  const std::string train = base::JoinPath(root_.path(), "train.py");
  const auto named = [this](const std::vector<std::string>& command) {
    return AbsolutePathsNamedBy({.name = "worker", .command = command}, root_.path());
  };
  EXPECT_THAT(named({"python", train}), ElementsAre(train));
  EXPECT_THAT(named({"run", "--file=" + train}), ElementsAre(train));
  EXPECT_THAT(named({"/bin/sh", "/etc/passwd", train + ".old"}), IsEmpty());
}

}  // namespace
}  // namespace muster::worktree
