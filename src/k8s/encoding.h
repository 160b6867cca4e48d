// Objects as the API server sends them: JSON, or protobuf, which costs it a fraction of the work.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "k8s/resource.h"

namespace muster::k8s {

// Any object from JSON; from protobuf pods without their spec, the metadata of any kind, lists of
// both, and refusals. Members are named and shaped as in JSON, but there are no empty texts,
// neither managedFields nor finalizers, and nothing of a status but what tells how tasks fare.
//
// A value that is_discarded() when the bytes are none of those.
Json ParseObject(absl::string_view bytes);

// An event of a watch: {"type": "ADDED", "object": {…}}. As ParseObject().
Json ParseEvent(absl::string_view bytes);

// Cuts the stream of a watch into its events, wherever its pieces end.
class EventSplitter {
 public:
  explicit EventSplitter(size_t max_event) : max_event_(max_event) {}

  // ResourceExhausted when an event is too long; else the first error of `take`.
  absl::Status Feed(absl::string_view bytes,
                    const std::function<absl::Status(absl::string_view event)>& take);

 private:
  struct Extent;
  static Extent FrameIn(absl::string_view bytes);
  Extent LineIn(absl::string_view bytes);

  const size_t max_event_;
  std::string begun_;
  size_t searched_ = 0;  // so much of it has no end of a line
};

}  // namespace muster::k8s
