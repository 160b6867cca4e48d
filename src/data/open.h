// Opens the data set that a job's `data` section describes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/config.h"
#include "data/dataset.h"

namespace muster::data {

// Returns NotFound if files are missing, InvalidArgument for an invalid section, DataLoss for
// damaged files. Every message names the remedy.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const DataConfig& config);

// Returns the section with local paths only, as far as its split needs them. Copies remote files
// here (storage/local_copy.h) and calls `log` with progress messages.
absl::StatusOr<DataConfig> Localized(DataConfig config,
                                     const std::function<void(const std::string&)>& log);

}  // namespace muster::data
