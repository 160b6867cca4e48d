// Reads the structured values of `data` in a job's `train` section.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/map_reader.h"
#include "codec/node.h"
#include "nlohmann/json.hpp"

namespace muster::job {

// Returns the list of 1 to 8 sizes, each from 1 to `max`, at `key`; null if it is absent, or
// invalid, which is reported.
nlohmann::json ReadSizes(codec::MapReader& reader, const char* key, int64_t max,
                         codec::Diagnostics& diagnostics);

// Returns the features of records, {image: {type: uint8, shape: [28, 28]}, label: int64}. A type
// without a map becomes a map.
nlohmann::json ReadRecordFeatures(const codec::Node& features, codec::Diagnostics& diagnostics);

// Returns the path of each split, {train: data/train-*, test: data/test-*}, resolved against
// `working_dir`.
nlohmann::json ReadSplitPaths(const codec::Node& paths, absl::string_view working_dir,
                              codec::Diagnostics& diagnostics);

// Checks `section`, the result of reading `data`, against its format. Records have two features,
// one of them the target. Other formats have no maps, and a fixed set of splits.
void CheckDataSection(const codec::Node& data, const nlohmann::json& section,
                      codec::Diagnostics& diagnostics);

}  // namespace muster::job
