// Finds the measurements that a line of a metrics file, or of a program's output, contains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::metrics {

struct Measurement {
  int64_t step = 0;
  std::optional<absl::Time> time;                      // if the line has one
  std::vector<std::pair<std::string, double>> values;  // by name; never empty
};

// Parses a line of a metrics file: a JSON object with a `step` and
//   {"step": 10, "name": "loss", "value": 0.5}     one value, or
//   {"step": 10, "loss": 0.5, "accuracy": 0.9}     every other number.
// `time` (seconds since 1970) is optional. NaN and Infinity are accepted as values, as Python
// writes them. Returns nullopt for anything else.
std::optional<Measurement> ParseMetricsLine(absl::string_view line);

// Finds measurements in the output of one task, line by line and in order. A line counts if it is a
// line of a metrics file, or text with a step and a value of a common metric:
//   loss = 0.12, step = 100 (1.2 sec)                            estimators
//   100/500 [====>...] - 2s 4ms/step - loss: 0.3 - acc: 0.9      Keras, after a line "Epoch 2/5"
//   Train Epoch: 1 [640/60000 (1%)]  Loss: 2.3                   PyTorch's examples
//   Epoch 3: loss=0.5                                            the epoch is the step
// Within an epoch, the step is counted from the first epoch. Not thread-safe.
class OutputParser {
 public:
  std::optional<Measurement> Parse(absl::string_view line);

 private:
  std::optional<Measurement> ParseText(absl::string_view line);

  int64_t epoch_ = 1;        // of the last line that named one
  int64_t first_epoch_ = 1;  // 0 for programs that count epochs from 0
};

}  // namespace muster::metrics
