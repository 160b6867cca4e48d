#include "data/open.h"

#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "data/idx/mnist.h"
#include "data/synthetic.h"
#include "data/tfrecord/tfrecord.h"
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
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown data format '", config.format, "'", base::DidYouMean(config.format, formats),
      "; expected one of ", absl::StrJoin(formats, ", ")));
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
  const auto own = config.paths.find(config.split);
  std::string& path = own != config.paths.end() ? own->second : config.path;
  MUSTER_ASSIGN_OR_RETURN(path, storage::FetchToLocal(path, log));
  return config;
}

}  // namespace muster::data
