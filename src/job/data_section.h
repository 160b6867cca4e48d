// Values of `data` in a job's `train` section that are more than a word or a number.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/map_reader.h"
#include "codec/node.h"
#include "nlohmann/json.hpp"

namespace muster {

// A list of 1 to 8 sizes from 1 to `max`, at `key` of what `reader` reads; null when it is absent
// or wrong.
nlohmann::json ReadSizes(codec::MapReader& reader, const char* key, int64_t max,
                         codec::Diagnostics& diagnostics);

// The features of records: {image: {type: uint8, shape: [28, 28]}, label: int64}. A type alone is
// written out as a map.
nlohmann::json ReadRecordFeatures(const codec::Node& features, codec::Diagnostics& diagnostics);

// A path for each split: {train: data/train-*, test: data/test-*}, each made absolute.
nlohmann::json ReadSplitPaths(const codec::Node& paths, absl::string_view working_dir,
                              codec::Diagnostics& diagnostics);

// Holds a section to its format: records have two features, one of them the target; others have no
// maps, and their splits are known. `section` is what was read of `data`.
void CheckDataForms(const codec::Node& data, const nlohmann::json& section,
                    codec::Diagnostics& diagnostics);

}  // namespace muster
