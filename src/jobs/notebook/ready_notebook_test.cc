#include "jobs/notebook/ready_notebook.h"

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace muster::jobs {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReadyNotebookTest, HasTheCellsOfTheProgram) {
  const auto notebook = nlohmann::json::parse(ReadyNotebook("mnist-x7k2q"));
  EXPECT_EQ(notebook["nbformat"], 4);
  const auto& cells = notebook["cells"];
  ASSERT_EQ(cells.size(), 4);
  EXPECT_EQ(cells[0]["cell_type"], "markdown");
  EXPECT_EQ(cells[0]["source"][0], "# mnist-x7k2q\n");
  for (size_t i = 1; i < cells.size(); ++i) {
    EXPECT_EQ(cells[i]["cell_type"], "code");
    EXPECT_EQ(cells[i]["outputs"].size(), 0);
    // The last line of a cell has no line end, and is not empty.
    EXPECT_THAT(cells[i]["source"].back().get<std::string>(), Not(HasSubstr("\n")));
    EXPECT_NE(cells[i]["source"].back(), "");
  }
  EXPECT_THAT(notebook.dump(), Not(HasSubstr("@JOB@")));
  EXPECT_THAT(notebook.dump(), HasSubstr("MUSTER_NOTEBOOK_JOB"));
}

TEST(ReadyNotebookTest, KeepsTheEditsOfTheUser) {
  const base::TempDir folder;
  const std::string path = base::JoinPath(folder.path(), "metrics.ipynb");
  const std::string record = base::JoinPath(folder.path(), "record");
  ASSERT_TRUE(WriteReadyNotebook("a", path, record).ok());
  EXPECT_EQ(*base::ReadFile(path), ReadyNotebook("a"));
  // An unchanged file is replaced by that of a newer version.
  ASSERT_TRUE(WriteReadyNotebook("b", path, record).ok());
  EXPECT_EQ(*base::ReadFile(path), ReadyNotebook("b"));
  ASSERT_TRUE(base::ReplaceFile(path, "edited").ok());
  ASSERT_TRUE(WriteReadyNotebook("c", path, record).ok());
  EXPECT_EQ(*base::ReadFile(path), "edited");
}

TEST(ReadyNotebookTest, LeavesAFileOfUnknownOriginAlone) {
  const base::TempDir folder;
  const std::string path = base::JoinPath(folder.path(), "metrics.ipynb");
  ASSERT_TRUE(base::ReplaceFile(path, "mine").ok());
  ASSERT_TRUE(WriteReadyNotebook("a", path, base::JoinPath(folder.path(), "record")).ok());
  EXPECT_EQ(*base::ReadFile(path), "mine");
}

}  // namespace
}  // namespace muster::jobs
