// The keys of a job's `train` section and what their values may be.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster {

// One key of a section and what its value may be.
struct Field {
  enum class Kind {
    kText,
    kPath,
    kPaths,     // a path, or a map of one for each split
    kFeatures,  // a number, or a map of what records have
    kInt,
    kSizes,
    kNumber,
    kBool,
    kChoice,
    kChoices
  };

  const char* key;
  Kind kind;
  nlohmann::json fallback = {};  // null: the key stays absent
  double min = 0;
  double max = 0;
  std::vector<std::string> choices = {};
};
using Fields = std::vector<Field>;

// Keys that only some kinds of a section have -> those kinds.
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

}  // namespace muster
