// The keys of a job's `train` section and their valid values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster::job {

// A key of a section and its valid values.
struct Field {
  enum class Kind {
    kText,
    kPath,
    kPaths,     // a path, or a map from split to path
    kFeatures,  // a number, or a map of the features of records
    kInt,
    kSizes,
    kNumber,
    kBool,
    kChoice,
    kChoices
  };

  const char* key;
  Kind kind;
  nlohmann::json fallback = {};  // default value; null = the key stays absent
  double min = 0;
  double max = 0;
  std::vector<std::string> choices = {};
};
using Fields = std::vector<Field>;

// From a key to the kinds of the section that have it. Other keys belong to all kinds.
using Owners = std::map<std::string, std::vector<std::string>>;

const Fields& TrainFields();
const Fields& DataFields();
const Owners& FormatKeys();
const Owners& SyntheticKeys();
const Fields& OptimizerFields();
const Owners& OptimizerKeys();
const Fields& ScheduleFields();
const Owners& ScheduleKeys();
const Fields& CheckpointFields();
const Fields& EvaluateFields();
const Fields& SummaryFields();
const Fields& ExportFields();
const Fields& EarlyStoppingFields();

}  // namespace muster::job
