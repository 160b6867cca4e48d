// Decodes objects of the API server: JSON, or protobuf, which is much cheaper for the server.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "k8s/resource.h"

namespace muster::k8s {

// Decodes any object from JSON. From protobuf, it decodes pods without their spec, the metadata of
// any kind, lists of both, and Status objects. Members have the names and types of JSON, without
// empty strings, managedFields and finalizers, and with the status fields that describe how tasks
// run.
//
// Returns a value that is_discarded() if the bytes are not such an object.
Json ParseObject(absl::string_view bytes);

// Decodes an event of a watch, {"type": "ADDED", "object": {…}}, like ParseObject().
Json ParseEvent(absl::string_view bytes);

// Splits the stream of a watch into events.
class EventSplitter {
 public:
  explicit EventSplitter(size_t max_event) : max_event_(max_event) {}

  // Calls `take` for each event that is complete. Returns ResourceExhausted if an event is too
  // long, else the first error of `take`.
  absl::Status Feed(absl::string_view bytes,
                    const std::function<absl::Status(absl::string_view event)>& take);

 private:
  struct Extent;
  static Extent FrameIn(absl::string_view bytes);
  Extent LineIn(absl::string_view bytes);

  const size_t max_event_;
  std::string buffer_;
  size_t searched_ = 0;  // length of the prefix of buffer_ without a newline
};

}  // namespace muster::k8s
