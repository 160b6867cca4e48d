// Decodes arbitrary bytes as responses of an API server, JSON or protobuf. A stream has the same
// events wherever it is split, and every decoded value can be serialized as JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "k8s/encoding.h"

namespace {

constexpr size_t kMaxEvent = 1 << 16;

void Write(const muster::k8s::Json& json) {
  json.dump(-1, ' ', false, muster::k8s::Json::error_handler_t::replace);
}

std::vector<std::string> EventsOf(absl::string_view stream, size_t piece) {
  muster::k8s::EventSplitter splitter(kMaxEvent);
  std::vector<std::string> events;
  while (!stream.empty()) {
    const absl::Status fed = splitter.Feed(stream.substr(0, piece), [&](absl::string_view event) {
      events.emplace_back(event);
      return absl::OkStatus();
    });
    if (!fed.ok()) break;
    stream.remove_prefix(std::min(piece, stream.size()));
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  Write(muster::k8s::ParseObject(bytes));
  const std::vector<std::string> events = EventsOf(bytes, size + 1);
  if (events != EventsOf(bytes, 7)) std::abort();
  for (const std::string& event : events) Write(muster::k8s::ParseEvent(event));
  return 0;
}
