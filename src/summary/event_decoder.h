// Decodes the Event messages of TensorBoard (docs/formats/summary.md) without generated classes, so
// that `muster`, which only reads them, does not load the protobuf library at every start.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "summary/event.h"

namespace muster::summary {

// Returns the event, or nullopt if `message` is malformed. Reads scalars of TensorFlow 1 and
// PyTorch (simple_value) and of TensorFlow 2 (a tensor of one number). Skips other content.
std::optional<Event> DecodeEvent(absl::string_view message);

}  // namespace muster::summary
