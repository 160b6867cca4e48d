#include "jobs/notebook/jupyter.h"

#include <sys/stat.h>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace muster::jobs {
namespace {

using testing::HasSubstr;

class FindJupyterTest : public testing::Test {
 protected:
  // Creates a program in a folder of the test. Returns its path.
  std::string Add(const std::string& name) const {
    const std::string path = base::JoinPath(folder_.path(), name);
    EXPECT_TRUE(base::MakeDirectories(base::FolderOf(path)).ok());
    EXPECT_TRUE(base::ReplaceFile(path, "#!/bin/sh\n", 0700).ok());
    return path;
  }
  absl::StatusOr<Jupyter> Find(const std::string& path = "") const {
    return FindJupyter(path, {{"PATH", base::JoinPath(folder_.path(), "bin")}}, folder_.path());
  }

  const base::TempDir folder_;
};

TEST_F(FindJupyterTest, PrefersLabThenNotebookThenServer) {
  const absl::Status none = Find().status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), HasSubstr("apt install jupyter-notebook"));
  const std::string server = Add("bin/jupyter-server");
  EXPECT_EQ(Find()->program, server);
  EXPECT_EQ(Find()->kind, JupyterKind::kServer);
  const std::string notebook = Add("bin/jupyter-notebook");
  EXPECT_EQ(Find()->program, notebook);
  EXPECT_EQ(Find()->kind, JupyterKind::kNotebook);
  const std::string lab = Add("bin/jupyter-lab");
  EXPECT_EQ(Find()->program, lab);
  EXPECT_EQ(Find()->kind, JupyterKind::kLab);
}

TEST_F(FindJupyterTest, TheUserNamesAServerOrTheCommandBesideIt) {
  Add("bin/jupyter-lab");
  const std::string notebook = Add("venv/bin/jupyter-notebook");
  EXPECT_EQ(Find(notebook)->program, notebook);
  EXPECT_EQ(Find("venv/bin/jupyter-notebook")->program, notebook);
  const std::string command = Add("venv/bin/jupyter");
  EXPECT_EQ(Find(command)->program, notebook);
  const absl::Status alone = Find(Add("empty/bin/jupyter")).status();
  EXPECT_EQ(alone.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(alone.message()), HasSubstr("server in "));
  EXPECT_EQ(Find("absent/jupyter-lab").status().code(), absl::StatusCode::kNotFound);
}

TEST(JupyterConfigTest, EveryVersionRequiresThePassword) {
  const std::string config = JupyterConfig({.password_hash = "sha256:a:b", .root = "/r"});
  EXPECT_EQ(HashInConfig(config), "sha256:a:b");
  const auto json = nlohmann::json::parse(config);
  for (const char* app : {"NotebookApp", "ServerApp"}) {
    EXPECT_EQ(json[app]["password"], "sha256:a:b");
    EXPECT_EQ(json[app]["token"], "");
    EXPECT_EQ(json[app]["ip"], "127.0.0.1");
    EXPECT_EQ(json[app]["port_retries"], 0);
    EXPECT_EQ(json[app]["allow_root"], false);
  }
  EXPECT_EQ(HashInConfig("{}"), "");
  EXPECT_EQ(HashInConfig("damaged"), "");
}

TEST(JupyterConfigTest, ThePageDependsOnTheServer) {
  EXPECT_EQ(PageOf(JupyterKind::kLab, "a.ipynb"), "/lab/tree/a.ipynb");
  EXPECT_EQ(PageOf(JupyterKind::kNotebook, "a.ipynb"), "/notebooks/a.ipynb");
  EXPECT_EQ(PageOf(JupyterKind::kServer, "a.ipynb"), "/");
}

}  // namespace
}  // namespace muster::jobs
