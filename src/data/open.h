// Which data set a job's `data` section means.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/config.h"
#include "data/dataset.h"

namespace muster::data {

// NotFound when the files are not there, InvalidArgument for a section that makes no sense,
// DataLoss for files that are damaged. Every message says what to do.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const DataConfig& config);

// The section with paths of this machine alone, as far as its split needs them: files of another
// storage are copied here, where they have not been. `log` hears of it.
absl::StatusOr<DataConfig> Localized(DataConfig config,
                                     const std::function<void(const std::string&)>& log);

}  // namespace muster::data
