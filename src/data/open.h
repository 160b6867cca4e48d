// Which data set a job's `data` section means.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace muster::data {

// The keys of the section (docs/job-file.md); 0 and empty mean that a key is absent.
struct DataConfig {
  std::string format;  // mnist | idx | synthetic
  std::string path;
  std::string split = "train";
  int64_t examples = 0;  // at most so many

  // Of synthetic.
  std::string kind;  // images | tabular | tokens | sequence
  int64_t classes = 0;
  int64_t features = 0;
  int64_t length = 0;
  int64_t vocabulary = 0;
  Shape shape;
};

// NotFound when the files are not there, InvalidArgument for a section that makes no sense,
// DataLoss for files that are damaged. Every message says what to do.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const DataConfig& config);

}  // namespace muster::data
