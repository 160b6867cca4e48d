// One record of an event file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "summary/histogram.h"

namespace muster::summary {

// The fields that are set depend on the kind of event. Content that Muster does not use is skipped.
struct Event {
  struct Scalar {
    std::string tag;
    float value = 0;
  };
  struct Distribution {
    std::string tag;
    Histogram histogram;
  };

  absl::Time time;
  int64_t step = 0;
  std::string file_version;  // only in the first record
  std::string graph_def;     // a serialized GraphDef
  bool restarted = false;    // earlier records of `step` and later steps are void
  std::vector<Scalar> scalars;
  std::vector<Distribution> distributions;
};

}  // namespace muster::summary
