// The files of a published data set: which they are, whether they are right, and how they come.
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
  std::string sha256;  // of the decompressed content, in lower case
};

// Where files come from.
class DataSource {
 public:
  virtual ~DataSource() = default;

  virtual std::string name() const = 0;  // for messages
  // The decompressed content of a file, of at most `max_bytes`. Cancelled when the user asked to
  // stop. It is not checked yet.
  virtual absl::StatusOr<std::string> Get(const std::string& file, int64_t max_bytes) = 0;
};
using DataSources = std::vector<std::unique_ptr<DataSource>>;

struct FetchResult {
  std::vector<std::string> fetched;   // the files that were not there or not right
  std::string source;                 // of the last of them
  std::vector<std::string> failures;  // "SOURCE: why", of sources that were tried before
};

// Whether all of `files` are in `directory`, plain or with .gz, and right.
bool AllAreRight(const std::vector<PublishedFile>& files, const std::string& directory);

// Brings what is missing or wrong, each file from the first source that has it right. A file
// appears under its name whole or not at all. Unavailable, with what each source failed of, when
// something is still missing; what came is kept. Cancelled when the user asked to stop.
absl::StatusOr<FetchResult> FetchFiles(const std::vector<PublishedFile>& files,
                                       const std::string& directory, const DataSources& sources);

}  // namespace muster::cli
