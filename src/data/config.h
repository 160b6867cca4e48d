// The `data` section of a job (docs/job-file.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::data {

// What a job says about one feature of its records.
struct RecordFeature {
  std::string type;  // uint8 | float | int64 | jpeg | png
  Shape shape;       // [] is a single value
};

// 0 and empty mean that a key is absent.
struct DataConfig {
  std::string format;  // mnist | idx | tfrecord | synthetic
  std::string path;
  std::string split = "train";
  int64_t examples = 0;  // at most so many

  // Of synthetic; classes and vocabulary also of tfrecord.
  std::string kind;  // images | tabular | tokens | sequence
  int64_t classes = 0;
  int64_t features = 0;
  int64_t length = 0;
  int64_t vocabulary = 0;
  Shape shape;

  // Of tfrecord.
  std::map<std::string, std::string> paths;  // split -> path, instead of `path`
  std::map<std::string, RecordFeature> record_features;
  std::string target;       // the feature that is learnt; "" is "label"
  std::string on_error;     // fail | skip
  std::string compression;  // none | gzip | zlib; "": as the content says
  // For compressed files, all together; beyond that they are decompressed into temporary files.
  int64_t memory = int64_t{256} << 20;
};

// From the section as the job's reader leaves it, or as a program has written it. InvalidArgument
// for a value of the wrong type.
absl::StatusOr<DataConfig> ParseDataConfig(const nlohmann::json& section);

}  // namespace muster::data
