#include "k8s/encoding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "base/wire_reader.h"

namespace muster::k8s {
namespace {

constexpr absl::string_view kMagic("k8s\0", 4);

// The messages of k8s.io/api and k8s.io/apimachinery (generated.proto), as far as they are read:
// the name that a field has in JSON, and what it holds.
// In JSON empty texts are left out, and zeros of numbers that need not be there.
enum class Holds { kText, kNumber, kMaybeNumber, kFlag, kTime, kTexts, kMessage, kMessages };
struct Field {
  uint32_t number = 0;
  const char* name = nullptr;
  Holds holds = Holds::kText;
  absl::Span<const Field> members = {};
};
using Fields = absl::Span<const Field>;

constexpr Field kOwner[] = {{1, "kind"},
                            {3, "name"},
                            {4, "uid"},
                            {5, "apiVersion"},
                            {6, "controller", Holds::kFlag},
                            {7, "blockOwnerDeletion", Holds::kFlag}};
constexpr Field kMetadata[] = {{1, "name"},
                               {2, "generateName"},
                               {3, "namespace"},
                               {5, "uid"},
                               {6, "resourceVersion"},
                               {7, "generation", Holds::kMaybeNumber},
                               {8, "creationTimestamp", Holds::kTime},
                               {9, "deletionTimestamp", Holds::kTime},
                               {10, "deletionGracePeriodSeconds", Holds::kNumber},
                               {11, "labels", Holds::kTexts},
                               {12, "annotations", Holds::kTexts},
                               {13, "ownerReferences", Holds::kMessages, kOwner}};
constexpr Field kWaiting[] = {{1, "reason"}, {2, "message"}};
constexpr Field kRunning[] = {{1, "startedAt", Holds::kTime}};
constexpr Field kTerminated[] = {{1, "exitCode", Holds::kNumber},
                                 {2, "signal", Holds::kMaybeNumber},
                                 {3, "reason"},
                                 {4, "message"},
                                 {5, "startedAt", Holds::kTime},
                                 {6, "finishedAt", Holds::kTime}};
constexpr Field kState[] = {{1, "waiting", Holds::kMessage, kWaiting},
                            {2, "running", Holds::kMessage, kRunning},
                            {3, "terminated", Holds::kMessage, kTerminated}};
constexpr Field kContainer[] = {{1, "name"},
                                {2, "state", Holds::kMessage, kState},
                                {3, "lastState", Holds::kMessage, kState},
                                {4, "ready", Holds::kFlag},
                                {5, "restartCount", Holds::kNumber}};
constexpr Field kCondition[] = {{1, "type"},
                                {2, "status"},
                                {4, "lastTransitionTime", Holds::kTime},
                                {5, "reason"},
                                {6, "message"}};
constexpr Field kPodStatus[] = {{1, "phase"},
                                {2, "conditions", Holds::kMessages, kCondition},
                                {3, "message"},
                                {4, "reason"},
                                {7, "startTime", Holds::kTime},
                                {8, "containerStatuses", Holds::kMessages, kContainer}};
constexpr Field kPod[] = {{1, "metadata", Holds::kMessage, kMetadata},
                          {3, "status", Holds::kMessage, kPodStatus}};
constexpr Field kPartial[] = {{1, "metadata", Holds::kMessage, kMetadata}};
constexpr Field kListMetadata[] = {
    {2, "resourceVersion"}, {3, "continue"}, {4, "remainingItemCount", Holds::kMaybeNumber}};
constexpr Field kPodList[] = {{1, "metadata", Holds::kMessage, kListMetadata},
                              {2, "items", Holds::kMessages, kPod}};
constexpr Field kPartialList[] = {{1, "metadata", Holds::kMessage, kListMetadata},
                                  {2, "items", Holds::kMessages, kPartial}};
constexpr Field kCause[] = {{1, "reason"}, {2, "message"}, {3, "field"}};
constexpr Field kDetails[] = {{1, "name"},
                              {2, "group"},
                              {3, "kind"},
                              {4, "causes", Holds::kMessages, kCause},
                              {5, "retryAfterSeconds", Holds::kMaybeNumber}};
constexpr Field kStatus[] = {{2, "status"},
                             {3, "message"},
                             {4, "reason"},
                             {5, "details", Holds::kMessage, kDetails},
                             {6, "code", Holds::kMaybeNumber}};

constexpr std::pair<absl::string_view, Fields> kKinds[] = {
    {"Pod", kPod},
    {"PodList", kPodList},
    {"PartialObjectMetadata", kPartial},
    {"PartialObjectMetadataList", kPartialList},
    {"Status", kStatus}};

// Calls visit(reader, field, type) at each field; it reads or skips it.
template <typename Visit>
bool VisitFields(absl::string_view message, Visit visit) {
  WireReader reader(message);
  uint32_t field = 0, type = 0;
  while (!reader.done()) {
    if (!reader.Tag(field, type) || !visit(reader, field, type)) return false;
  }
  return true;
}

// Two texts, such as a map's entry or an apiVersion and kind.
bool ReadPair(absl::string_view message, absl::string_view& first, absl::string_view& second) {
  return VisitFields(message, [&](WireReader& reader, uint32_t field, uint32_t type) {
    if (type != kLengthDelimited || field > 2) return reader.Skip(type);
    return reader.Bytes(field == 1 ? first : second);
  });
}

// Nothing for the time that is not set.
bool ReadTime(absl::string_view message, Json& time) {
  uint64_t seconds = 0;
  const bool read = VisitFields(message, [&](WireReader& reader, uint32_t field, uint32_t type) {
    return field == 1 && type == kVarint ? reader.Varint(seconds) : reader.Skip(type);
  });
  if (read && !message.empty()) {
    time = Timestamp(absl::FromUnixSeconds(static_cast<int64_t>(seconds)));
  }
  return read;
}

bool ReadMessage(absl::string_view message, Fields fields, Json& object);

bool ReadBytes(const Field& field, absl::string_view bytes, Json& object) {
  switch (field.holds) {
    case Holds::kTime: {
      Json time;
      if (!ReadTime(bytes, time)) return false;
      if (!time.is_null()) object[field.name] = std::move(time);
      return true;
    }
    case Holds::kTexts: {
      absl::string_view key, value;
      if (!ReadPair(bytes, key, value)) return false;
      object[field.name][std::string(key)] = std::string(value);
      return true;
    }
    case Holds::kMessage: {
      Json& member = object[field.name];
      if (!member.is_object()) member = Json::object();
      return ReadMessage(bytes, field.members, member);
    }
    case Holds::kMessages: {
      Json& list = object[field.name];
      list.push_back(Json::object());
      return ReadMessage(bytes, field.members, list.back());
    }
    default:
      if (!bytes.empty()) object[field.name] = std::string(bytes);
      return true;
  }
}

// Into an object; as deep as `fields` are.
bool ReadMessage(absl::string_view message, Fields fields, Json& object) {
  return VisitFields(message, [&](WireReader& reader, uint32_t number, uint32_t type) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& one) { return one.number == number; });
    if (field == fields.end()) return reader.Skip(type);
    uint64_t value = 0;
    absl::string_view bytes;
    switch (field->holds) {
      case Holds::kFlag:
        if (type != kVarint || !reader.Varint(value)) return false;
        object[field->name] = value != 0;
        return true;
      case Holds::kNumber:
      case Holds::kMaybeNumber:
        if (type != kVarint || !reader.Varint(value)) return false;
        if (value == 0 && field->holds == Holds::kMaybeNumber) return true;
        object[field->name] = static_cast<int64_t>(value);
        return true;
      default:
        return type == kLengthDelimited && reader.Bytes(bytes) && ReadBytes(*field, bytes, object);
    }
  });
}

Json Unreadable() { return Json(Json::value_t::discarded); }

// What stands after the magic: the object's kind, and itself.
Json ReadObject(absl::string_view bytes) {
  absl::string_view meta, raw, api_version, kind;
  if (!ReadPair(bytes, meta, raw) || !ReadPair(meta, api_version, kind)) return Unreadable();
  const auto* known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const auto& one) { return one.first == kind; });
  Json object = {{"apiVersion", std::string(api_version)}, {"kind", std::string(kind)}};
  if (known == std::end(kKinds) || !ReadMessage(raw, known->second, object)) return Unreadable();
  return object;
}

// Copying and writing a Json is recursive, and the depth of a custom resource is its author's
// choice: what is deeper than any kind needs is dropped.
bool IsShallow(int depth, Json::parse_event_t event, const Json& /*parsed*/) {
  const bool begins =
      event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
  return !begins || depth < kMaxJsonDepth;
}

Json ParseJsonEvent(absl::string_view text) {
  // Who last changed which field takes half of an object, and nobody asks.
  constexpr int kDepth = 3;  // of {"object": {"metadata": {"managedFields": …}}}
  const auto keep = [](int depth, Json::parse_event_t event, const Json& parsed) {
    if (!IsShallow(depth, event, parsed)) return false;
    return depth != kDepth || event != Json::parse_event_t::key || parsed != "managedFields";
  };
  return Json::parse(text.begin(), text.end(), keep, /*allow_exceptions=*/false);
}

}  // namespace

Json ParseObject(absl::string_view bytes) {
  if (absl::ConsumePrefix(&bytes, kMagic)) return ReadObject(bytes);
  const Json::parser_callback_t keep =
      NestsDeeperThan(bytes, kMaxJsonDepth) ? IsShallow : Json::parser_callback_t();
  return Json::parse(bytes.begin(), bytes.end(), keep, /*allow_exceptions=*/false);
}

Json ParseEvent(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "{")) return ParseJsonEvent(bytes);
  absl::string_view type, extension, object, none;
  if (!ReadPair(bytes, type, extension) || !ReadPair(extension, object, none)) return Unreadable();
  Json parsed = ParseObject(object);
  if (parsed.is_discarded()) return Unreadable();
  return {{"type", std::string(type)}, {"object", std::move(parsed)}};
}

// Where an event is, and where the next one begins: npos while it is not all there.
struct EventSplitter::Extent {
  size_t begin = 0;
  size_t length = 0;
  size_t end = absl::string_view::npos;
};

// A length, the highest byte first, and so many bytes.
EventSplitter::Extent EventSplitter::FrameIn(absl::string_view bytes) {
  constexpr size_t kHead = 4;
  if (bytes.size() < kHead) return {};
  size_t length = 0;
  for (const char byte : bytes.substr(0, kHead)) {
    length = length << 8 | static_cast<unsigned char>(byte);
  }
  return {.begin = kHead, .length = length, .end = kHead + length};
}

EventSplitter::Extent EventSplitter::LineIn(absl::string_view bytes) {
  const size_t end = bytes.find('\n', std::exchange(searched_, 0));
  if (end != absl::string_view::npos) return {.length = end, .end = end + 1};
  searched_ = bytes.size();
  return {.length = bytes.size()};
}

absl::Status EventSplitter::Feed(absl::string_view bytes,
                                 const std::function<absl::Status(absl::string_view)>& take) {
  absl::StrAppend(&begun_, bytes);
  absl::string_view rest = begun_;
  for (;;) {
    // A frame is shorter than 16 MiB, so that it begins with a zero; no line does.
    const bool is_frame = absl::StartsWith(rest, absl::string_view("\0", 1));
    const Extent event = is_frame ? FrameIn(rest) : LineIn(rest);
    if (event.length > max_event_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("an event has more than ", max_event_, " bytes"));
    }
    if (event.end > rest.size()) break;
    MUSTER_RETURN_IF_ERROR(take(rest.substr(event.begin, event.length)));
    rest.remove_prefix(event.end);
  }
  begun_.erase(0, begun_.size() - rest.size());
  return absl::OkStatus();
}

}  // namespace muster::k8s
