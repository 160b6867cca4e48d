// Jupyter on this machine: which program, how it is configured, where its pages are.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::jobs {

// The servers of Jupyter differ in their pages.
enum class JupyterKind { kLab, kNotebook, kServer };

struct Jupyter {
  std::string program;  // absolute path
  JupyterKind kind = JupyterKind::kNotebook;
};

// Returns the server of Jupyter at `path`, which may also be the `jupyter` command beside it. With
// an empty path, returns the first of jupyter-lab, jupyter-notebook and jupyter-server in PATH of
// `env`. Returns NotFound with the packages to install.
absl::StatusOr<Jupyter> FindJupyter(const std::string& path,
                                    const std::map<std::string, std::string>& env,
                                    const std::string& working_dir);

struct JupyterSettings {
  std::string password_hash;  // in Jupyter's format (manifest/notebook.h)
  std::string root;           // the folder that it shows
  bool as_root = false;       // Jupyter refuses to run as root unless it is told to
};

// Returns a configuration file that every version of Jupyter since notebook 5 reads. The server
// listens on loopback only and requires the password; it accepts no token.
std::string JupyterConfig(const JupyterSettings& settings);
// Returns the password hash in such a file, or "" if there is none.
std::string HashInConfig(absl::string_view config);

// Returns the page of a notebook file in the root folder: "/lab/tree/metrics.ipynb".
std::string PageOf(JupyterKind kind, absl::string_view file);

}  // namespace muster::jobs
