// Finds the files of the working directory that the command of a role names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job_spec.h"

namespace muster::worktree {

// Returns the folder of the role's tasks relative to the working directory `root`: "" for `root`
// itself. Returns nullopt if the role has a working_dir outside of it, such as a folder of an
// image.
std::optional<std::string> FolderBelow(const std::string& root, const job::RoleSpec& role);

// Returns the files and folders below `root` that words of the role's command name by relative
// paths, relative to `root`, each once and in the order of the command:
//   - a file: `train.py`, `--config=conf/a.yaml`, also within a line for a shell
//   - a folder that is written with a slash (`src/`) or follows `cd`
//   - a module of Python after `-m`: `trainer.task` is trainer/task.py or trainer/task/__main__.py
// The name of a program, which is looked up in PATH, names no file. A working_dir outside of `root`
// counts as `root`.
std::vector<std::string> FilesNamedBy(const job::RoleSpec& role, const std::string& root);

// Returns the words of the command that are absolute paths below `root` of files and folders there.
// Another machine does not have them under these names.
std::vector<std::string> AbsolutePathsNamedBy(const job::RoleSpec& role, const std::string& root);

}  // namespace muster::worktree
