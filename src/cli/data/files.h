// Downloads and verifies the files of a published data set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::cli {

struct PublishedFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;  // of the decompressed content, lower-case hexadecimal
};

// A place to download files from.
class DataSource {
 public:
  virtual ~DataSource() = default;

  virtual std::string name() const = 0;  // for messages
  // Returns the decompressed content of a file of at most `max_bytes`, unverified. Returns
  // Cancelled if the user asked to stop.
  virtual absl::StatusOr<std::string> Get(const std::string& file, int64_t max_bytes) = 0;
};
using DataSources = std::vector<std::unique_ptr<DataSource>>;

struct FetchResult {
  std::vector<std::string> fetched;   // the files that were missing or wrong
  std::string source;                 // the source of the last of them
  std::vector<std::string> failures;  // "SOURCE: reason", for sources tried before
};

// Returns whether all of `files` are in `directory`, plain or with .gz, with the right content.
bool AllAreIntact(const std::vector<PublishedFile>& files, const std::string& directory);

// Downloads missing and wrong files, each from the first source that has the right content. Writes
// files atomically. Returns Unavailable, with the failure of each source, if a file is still
// missing; keeps the others. Returns Cancelled if the user asked to stop.
absl::StatusOr<FetchResult> FetchFiles(const std::vector<PublishedFile>& files,
                                       const std::string& directory, const DataSources& sources);

// Returns whether the path is a regular file. Errors count as no.
bool IsRegular(const std::string& path);

}  // namespace muster::cli
