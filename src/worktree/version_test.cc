#include "worktree/version.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"

namespace muster::worktree {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VersionTest : public testing::Test {
 protected:
  VersionTest() : root_(temp_.path() + "/project") { std::filesystem::create_directory(root_); }

  std::string In(const std::string& path) const { return root_ + "/" + path; }
  std::string InView(const std::string& path) const { return view_ + "/" + path; }
  void Write(const std::string& path, const std::string& content, int mode = 0644) {
    ASSERT_TRUE(base::MakeDirectories(base::FolderOf(In(path))).ok());
    ASSERT_TRUE(base::ReplaceFile(In(path), content, mode).ok());
  }
  Version Now() {
    Version version;
    version.files = ListProgram(root_, {}).value();
    EXPECT_TRUE(HashFiles(root_, version.files, "").ok());
    return version;
  }
  Version Saved() {
    Version version = Now();
    EXPECT_TRUE(versions_.Save(root_, version, store_).ok());
    return version;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const WorkFile& file : Now().files) names.push_back(file.path);
    return names;
  }
  size_t Stored() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(store_), {}));
  }

  base::TempDir temp_;
  const std::string root_;
  const std::string view_ = temp_.path() + "/view", store_ = temp_.path() + "/files";
  const VersionStore versions_{temp_.path() + "/versions"};
};

TEST_F(VersionTest, TheProgramIsWhatPeopleWrite) {
  for (const char* name : {"train.py", "lib/Net.PY", "conf/a.yaml", "Makefile", "metrics.json",
                           "model.pt", "data.csv", "out.log", "notes"}) {
    Write(name, "x");
  }
  Write("run", "x", 0755);
  EXPECT_THAT(Names(), ElementsAre("Makefile", "conf/a.yaml", "lib/Net.PY", "run", "train.py"));
}

TEST_F(VersionTest, LeavesOutIgnoredFilesPackagesAndExcludedFolders) {
  for (const char* name : {"a.py", "build/b.py", "venv/pyvenv.cfg", "venv/lib/c.py",
                           "node_modules/d.js", "runs/e.py", ".git/f.py"}) {
    Write(name, "x");
  }
  Write(".gitignore", "build\n");
  std::filesystem::create_symlink("/etc/hosts", In("absolute.py"));
  const auto files = ListProgram(root_, {In("runs"), "/nonexistent"});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1);
  EXPECT_EQ((*files)[0].path, "a.py");
}

TEST_F(VersionTest, LimitsAreErrorsThatNameTheRemedy) {
  Write("big/a.py", std::string(1000, 'x'));
  Write("b.py", "x");
  const auto large = ListProgram(root_, {}, {.max_bytes = 100});
  EXPECT_EQ(large.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(large.status().message()), HasSubstr("big/a.py"));
  EXPECT_THAT(std::string(large.status().message()), HasSubstr(".gitignore"));
  EXPECT_EQ(ListProgram(root_, {}, {.max_files = 1}).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto crowded = ListProgram(root_, {}, {.max_entries = 2});
  EXPECT_THAT(std::string(crowded.status().message()), HasSubstr("a folder of its own"));
}

TEST_F(VersionTest, ComparesNamesContentsAndModes) {
  Write("a.py", "1");
  Write("b.py", "1");
  Write("c.sh", "1");
  Write("d.py", "1");
  const Version before = Now();
  EXPECT_THAT(Compare(before, Now()), IsEmpty());
  EXPECT_EQ(before.Id(), Now().Id());
  std::filesystem::remove(In("a.py"));
  Write("b.py", "2");
  Write("c.sh", "1", 0755);
  Write("e.py", "1");
  const Version after = Now();
  using Kind = FileChange::Kind;
  EXPECT_THAT(Compare(before, after),
              ElementsAre(FileChange{Kind::kRemoved, "a.py"}, FileChange{Kind::kChanged, "b.py"},
                          FileChange{Kind::kChanged, "c.sh"}, FileChange{Kind::kAdded, "e.py"}));
  EXPECT_NE(before.Id(), after.Id());
}

TEST_F(VersionTest, FilesBelowAPathHaveTheirOwnId) {
  Write("a.py", "1");
  Write("data/b.py", "1");
  const Version before = Now();
  Write("a.py", "2");
  const Version after = Now();
  EXPECT_EQ(before.IdBelow(root_, {In("data")}), after.IdBelow(root_, {In("data")}));
  EXPECT_NE(before.IdBelow(root_, {In("data")}), "");
  EXPECT_NE(before.IdBelow(root_, {In("a.py")}), after.IdBelow(root_, {In("a.py")}));
  EXPECT_EQ(before.IdBelow(root_, {In("dat")}), "");
}

TEST_F(VersionTest, ASavedVersionIsReadBack) {
  Write("a.py", "first");
  const std::string id = Saved().Id();
  Write("a.py", "second");
  EXPECT_EQ(versions_.Load(id)->Id(), id);
  EXPECT_EQ(*versions_.Read(id, "a.py"), "first");
  EXPECT_EQ(FirstChange(root_, *versions_.Load(id)), "a.py");
  EXPECT_TRUE(absl::IsNotFound(versions_.Load(Now().Id()).status()));
  Write("a.py", "first");
  EXPECT_EQ(FirstChange(root_, *versions_.Load(id)), "") << "the edit was taken back";
}

TEST_F(VersionTest, ADamagedListingIsDetected) {
  Write("a.py", "first");
  const std::string id = Saved().Id();
  const std::string listing = temp_.path() + "/versions/" + id.substr(0, 16) + "/files.json";
  ASSERT_TRUE(base::ReplaceFile(listing, "{").ok());
  EXPECT_EQ(versions_.Load(id).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(base::ReplaceFile(listing, R"({"files": []})").ok());
  EXPECT_EQ(versions_.Load(id).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(VersionTest, AFileThatChangesAfterItsHashIsNotSaved) {
  Write("a.py", "first");
  const Version version = Now();
  Write("a.py", "second");
  EXPECT_EQ(versions_.Save(root_, version, store_).code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(versions_.Load(version.Id()).ok());
  Write("a.py", "first");
  EXPECT_TRUE(versions_.Save(root_, version, store_).ok())
      << "remains of a failed save are removed";
  EXPECT_TRUE(versions_.Load(version.Id()).ok());
}

TEST_F(VersionTest, EqualContentsAreStoredOnce) {
  Write("a.py", "same");
  Write("b.py", "same");
  const std::string first = Saved().Id();
  EXPECT_EQ(Stored(), 1);
  Write("c.py", "other");
  const std::string second = Saved().Id();
  EXPECT_EQ(Stored(), 2);
  RemoveUnused(store_);
  EXPECT_EQ(Stored(), 2);
  versions_.KeepOnly(first);
  EXPECT_FALSE(versions_.Load(second).ok());
  RemoveUnused(store_);
  EXPECT_EQ(Stored(), 1);
  EXPECT_EQ(*versions_.Read(first, "a.py"), "same");
}

TEST_F(VersionTest, AViewHasTheProgramOfTheVersionAndAllOtherFiles) {
  Write("train.py", "old");
  Write("lib/net.py", "old");
  Write("lib/run", "old", 0755);
  Write("lib/weights.bin", "weights");
  Write("data/x", "data");
  Write("lib/__pycache__/net.pyc", "compiled");
  const std::string id = Saved().Id();
  Write("train.py", "new");
  std::filesystem::remove(In("lib/net.py"));
  Write("added.py", "new");
  Write("state.json", "written by the job");
  ASSERT_TRUE(versions_.MakeView(id, root_, view_).ok());
  EXPECT_EQ(*base::ReadFile(InView("train.py")), "old");
  EXPECT_EQ(*base::ReadFile(InView("lib/net.py")), "old");
  EXPECT_EQ(::access(InView("lib/run").c_str(), X_OK), 0);
  EXPECT_EQ(*base::ReadFile(InView("lib/weights.bin")), "weights");
  EXPECT_EQ(*base::ReadFile(InView("data/x")), "data");
  EXPECT_EQ(*base::ReadFile(InView("state.json")), "written by the job");
  EXPECT_FALSE(std::filesystem::exists(InView("added.py")));
  EXPECT_FALSE(std::filesystem::exists(InView("lib/__pycache__")));
  // Files that the program writes in a folder of data arrive in the directory itself.
  ASSERT_TRUE(base::ReplaceFile(InView("data/y"), "result").ok());
  EXPECT_EQ(*base::ReadFile(In("data/y")), "result");
}

TEST_F(VersionTest, AViewInUseIsCompleted) {
  Write("train.py", "old");
  const std::string id = Saved().Id();
  Write("train.py", "new");
  ASSERT_TRUE(versions_.MakeView(id, root_, view_).ok());
  ASSERT_TRUE(base::ReplaceFile(InView("train.py"), "written by its task").ok());
  Write("late.csv", "data");
  ASSERT_TRUE(versions_.MakeView(id, root_, view_).ok());
  EXPECT_EQ(*base::ReadFile(InView("train.py")), "written by its task");
  EXPECT_EQ(*base::ReadFile(InView("late.csv")), "data");
  EXPECT_EQ(*versions_.Read(id, "train.py"), "old") << "a task does not change the version";
}

}  // namespace
}  // namespace muster::worktree
