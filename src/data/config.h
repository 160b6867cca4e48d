// The `data` section of a job (docs/job-file.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/bytes/dtype.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::data {

// The declaration of one feature of a job's records.
struct RecordFeature {
  std::string type;   // uint8 | float | int64 | jpeg | png
  base::Shape shape;  // [] is a single value
};

// A field that is 0 or empty means that its key is absent.
struct DataConfig {
  std::string format;  // mnist | idx | tfrecord | synthetic
  std::string path;
  std::string split = "train";
  int64_t examples = 0;  // upper limit

  // For synthetic; classes and vocabulary also for tfrecord.
  std::string kind;  // images | tabular | tokens | sequence
  int64_t classes = 0;
  int64_t features = 0;
  int64_t length = 0;
  int64_t vocabulary = 0;
  base::Shape shape;

  // For tfrecord.
  std::map<std::string, std::string> paths;  // split -> path, instead of `path`
  std::map<std::string, RecordFeature> record_features;
  std::string target;       // the feature to learn; "" means "label"
  std::string on_error;     // fail | skip
  std::string compression;  // none | gzip | zlib; "": detected from the content
  // Memory for all decompressed files; beyond that, temporary files are used.
  int64_t memory = int64_t{256} << 20;
};

// Parses the section. Returns InvalidArgument for a value of the wrong type.
absl::StatusOr<DataConfig> ParseDataConfig(const nlohmann::json& section);

}  // namespace muster::data
