// Which data set a job's `data` section means.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/config.h"
#include "data/dataset.h"

namespace muster::data {

// NotFound when the files are not there, InvalidArgument for a section that makes no sense,
// DataLoss for files that are damaged. Every message says what to do.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const DataConfig& config);

}  // namespace muster::data
