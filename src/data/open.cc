#include "data/open.h"

#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "data/mnist.h"
#include "data/synthetic.h"
#include "data/tfrecord.h"
#include "storage/local_copy.h"

namespace muster::data {
namespace {

absl::StatusOr<std::shared_ptr<const Dataset>> Open(const DataConfig& config) {
  const std::vector<std::string> formats = {"mnist", "idx", "tfrecord", "synthetic"};
  if (config.examples < 0) return absl::InvalidArgumentError("'examples' of data is negative");
  if (config.format == "synthetic") return OpenSynthetic(config);
  if (config.format == "tfrecord") return OpenTfRecord(config);
  if (config.path.empty() && (config.format == "mnist" || config.format == "idx")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'format: ", config.format, "' needs 'path', the folder of its files"));
  }
  if (config.format == "mnist") return OpenMnist(config);
  if (config.format == "idx") return OpenIdx(config);
  return absl::InvalidArgumentError(absl::StrCat("there is no data format '", config.format, "'",
                                                 DidYouMean(config.format, formats), "; there are ",
                                                 absl::StrJoin(formats, ", ")));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const DataConfig& config) {
  try {
    return Open(config);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for the data set");
  }
}

absl::StatusOr<DataConfig> Localized(DataConfig config,
                                     const std::function<void(const std::string&)>& log) {
  storage::Storage storage;
  const auto localize = [&](std::string& path) -> absl::Status {
    if (!storage::IsRemote(path)) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(path));
    MUSTER_ASSIGN_OR_RETURN(path, storage::LocalCopy(storage, url, storage::CacheFolder(), log));
    return absl::OkStatus();
  };
  if (const auto own = config.paths.find(config.split); own != config.paths.end()) {
    MUSTER_RETURN_IF_ERROR(localize(own->second));
  } else {
    MUSTER_RETURN_IF_ERROR(localize(config.path));
  }
  return config;
}

}  // namespace muster::data
