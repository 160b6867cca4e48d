#include "k8s/encoding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/bytes/wire_reader.h"
#include "base/status_macros.h"
#include "base/text/json.h"

namespace muster::k8s {
namespace {

// Precedes every protobuf object of the API server; an object in JSON begins with a brace.
constexpr absl::string_view kMagic("k8s\0", 4);

// The fields of k8s.io/api and k8s.io/apimachinery (generated.proto) that are read, with their
// names in JSON. JSON omits empty strings, and zeros of optional numbers.
enum class FieldType { kText, kNumber, kOptionalNumber, kFlag, kTime, kTexts, kMessage, kMessages };
struct Field {
  uint32_t number = 0;
  const char* name = nullptr;
  FieldType type = FieldType::kText;
  absl::Span<const Field> members = {};
};
using Fields = absl::Span<const Field>;

constexpr Field kOwner[] = {{1, "kind"},
                            {3, "name"},
                            {4, "uid"},
                            {5, "apiVersion"},
                            {6, "controller", FieldType::kFlag},
                            {7, "blockOwnerDeletion", FieldType::kFlag}};
constexpr Field kMetadata[] = {{1, "name"},
                               {2, "generateName"},
                               {3, "namespace"},
                               {5, "uid"},
                               {6, "resourceVersion"},
                               {7, "generation", FieldType::kOptionalNumber},
                               {8, "creationTimestamp", FieldType::kTime},
                               {9, "deletionTimestamp", FieldType::kTime},
                               {10, "deletionGracePeriodSeconds", FieldType::kNumber},
                               {11, "labels", FieldType::kTexts},
                               {12, "annotations", FieldType::kTexts},
                               {13, "ownerReferences", FieldType::kMessages, kOwner}};
constexpr Field kWaiting[] = {{1, "reason"}, {2, "message"}};
constexpr Field kRunning[] = {{1, "startedAt", FieldType::kTime}};
constexpr Field kTerminated[] = {{1, "exitCode", FieldType::kNumber},
                                 {2, "signal", FieldType::kOptionalNumber},
                                 {3, "reason"},
                                 {4, "message"},
                                 {5, "startedAt", FieldType::kTime},
                                 {6, "finishedAt", FieldType::kTime}};
constexpr Field kState[] = {{1, "waiting", FieldType::kMessage, kWaiting},
                            {2, "running", FieldType::kMessage, kRunning},
                            {3, "terminated", FieldType::kMessage, kTerminated}};
constexpr Field kContainer[] = {{1, "name"},
                                {2, "state", FieldType::kMessage, kState},
                                {3, "lastState", FieldType::kMessage, kState},
                                {4, "ready", FieldType::kFlag},
                                {5, "restartCount", FieldType::kNumber}};
constexpr Field kCondition[] = {{1, "type"},
                                {2, "status"},
                                {4, "lastTransitionTime", FieldType::kTime},
                                {5, "reason"},
                                {6, "message"}};
constexpr Field kPodStatus[] = {{1, "phase"},
                                {2, "conditions", FieldType::kMessages, kCondition},
                                {3, "message"},
                                {4, "reason"},
                                {7, "startTime", FieldType::kTime},
                                {8, "containerStatuses", FieldType::kMessages, kContainer}};
constexpr Field kPod[] = {{1, "metadata", FieldType::kMessage, kMetadata},
                          {3, "status", FieldType::kMessage, kPodStatus}};
constexpr Field kPartial[] = {{1, "metadata", FieldType::kMessage, kMetadata}};
constexpr Field kListMetadata[] = {
    {2, "resourceVersion"}, {3, "continue"}, {4, "remainingItemCount", FieldType::kOptionalNumber}};
constexpr Field kPodList[] = {{1, "metadata", FieldType::kMessage, kListMetadata},
                              {2, "items", FieldType::kMessages, kPod}};
constexpr Field kPartialList[] = {{1, "metadata", FieldType::kMessage, kListMetadata},
                                  {2, "items", FieldType::kMessages, kPartial}};
constexpr Field kCause[] = {{1, "reason"}, {2, "message"}, {3, "field"}};
constexpr Field kDetails[] = {{1, "name"},
                              {2, "group"},
                              {3, "kind"},
                              {4, "causes", FieldType::kMessages, kCause},
                              {5, "retryAfterSeconds", FieldType::kOptionalNumber}};
constexpr Field kStatus[] = {{2, "status"},
                             {3, "message"},
                             {4, "reason"},
                             {5, "details", FieldType::kMessage, kDetails},
                             {6, "code", FieldType::kOptionalNumber}};

constexpr std::pair<absl::string_view, Fields> kEncodedKinds[] = {
    {"Pod", kPod},
    {"PodList", kPodList},
    {"PartialObjectMetadata", kPartial},
    {"PartialObjectMetadataList", kPartialList},
    {"Status", kStatus}};

// Reads a message of two strings, such as a map entry or an apiVersion and kind.
bool ReadPair(absl::string_view message, absl::string_view& first, absl::string_view& second) {
  return base::VisitFields(message, [&](base::WireReader& reader, uint32_t field, uint32_t type) {
    if (type != base::kLengthDelimited || field > 2) return reader.Skip(type);
    return reader.Bytes(field == 1 ? first : second);
  });
}

// Leaves `time` null if the message is the zero time.
bool ReadTime(absl::string_view message, Json& time) {
  uint64_t seconds = 0;
  const bool read =
      base::VisitFields(message, [&](base::WireReader& reader, uint32_t field, uint32_t type) {
        return field == 1 && type == base::kVarint ? reader.Varint(seconds) : reader.Skip(type);
      });
  if (read && !message.empty()) {
    time = Timestamp(absl::FromUnixSeconds(static_cast<int64_t>(seconds)));
  }
  return read;
}

bool ReadMessage(absl::string_view message, Fields fields, Json& object);

bool ReadBytes(const Field& field, absl::string_view bytes, Json& object) {
  switch (field.type) {
    case FieldType::kTime: {
      Json time;
      if (!ReadTime(bytes, time)) return false;
      if (!time.is_null()) object[field.name] = std::move(time);
      return true;
    }
    case FieldType::kTexts: {
      absl::string_view key, value;
      if (!ReadPair(bytes, key, value)) return false;
      object[field.name][std::string(key)] = std::string(value);
      return true;
    }
    case FieldType::kMessage: {
      Json& member = object[field.name];
      if (!member.is_object()) member = Json::object();
      return ReadMessage(bytes, field.members, member);
    }
    case FieldType::kMessages: {
      Json& list = object[field.name];
      list.push_back(Json::object());
      return ReadMessage(bytes, field.members, list.back());
    }
    default:
      if (!bytes.empty()) object[field.name] = std::string(bytes);
      return true;
  }
}

// Decodes a message into `object`. The recursion is bounded by the depth of `fields`.
bool ReadMessage(absl::string_view message, Fields fields, Json& object) {
  return base::VisitFields(message, [&](base::WireReader& reader, uint32_t number, uint32_t type) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& one) { return one.number == number; });
    if (field == fields.end()) return reader.Skip(type);
    uint64_t value = 0;
    absl::string_view bytes;
    switch (field->type) {
      case FieldType::kFlag:
        if (type != base::kVarint || !reader.Varint(value)) return false;
        object[field->name] = value != 0;
        return true;
      case FieldType::kNumber:
      case FieldType::kOptionalNumber:
        if (type != base::kVarint || !reader.Varint(value)) return false;
        if (value == 0 && field->type == FieldType::kOptionalNumber) return true;
        object[field->name] = static_cast<int64_t>(value);
        return true;
      default:
        return type == base::kLengthDelimited && reader.Bytes(bytes) &&
               ReadBytes(*field, bytes, object);
    }
  });
}

Json Discarded() { return Json(Json::value_t::discarded); }

// Decodes the runtime.Unknown after the magic: the type, and the raw object.
Json ReadObject(absl::string_view bytes) {
  absl::string_view meta, raw, api_version, kind;
  if (!ReadPair(bytes, meta, raw) || !ReadPair(meta, api_version, kind)) return Discarded();
  const auto* known = std::find_if(std::begin(kEncodedKinds), std::end(kEncodedKinds),
                                   [&](const auto& one) { return one.first == kind; });
  Json object = {{"apiVersion", std::string(api_version)}, {"kind", std::string(kind)}};
  if (known == std::end(kEncodedKinds) || !ReadMessage(raw, known->second, object))
    return Discarded();
  return object;
}

// A parser callback that drops values nested deeper than any kind needs. Copying and serializing a
// Json is recursive, and users choose the depth of custom resources.
bool IsShallow(int depth, Json::parse_event_t event, const Json& /*parsed*/) {
  const bool begins =
      event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
  return !begins || depth < base::kMaxJsonDepth;
}

Json ParseJsonEvent(absl::string_view text) {
  // managedFields is about half of an object, and nothing reads it.
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
      base::NestsDeeperThan(bytes, base::kMaxJsonDepth) ? IsShallow : Json::parser_callback_t();
  return Json::parse(bytes.begin(), bytes.end(), keep, /*allow_exceptions=*/false);
}

Json ParseEvent(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "{")) return ParseJsonEvent(bytes);
  absl::string_view type, extension, object, none;
  if (!ReadPair(bytes, type, extension) || !ReadPair(extension, object, none)) return Discarded();
  Json parsed = ParseObject(object);
  if (parsed.is_discarded()) return Discarded();
  return {{"type", std::string(type)}, {"object", std::move(parsed)}};
}

// The position of an event, and the end of its frame or line. npos: incomplete.
struct EventSplitter::Extent {
  size_t begin = 0;
  size_t length = 0;
  size_t end = absl::string_view::npos;
};

// A frame is a big-endian length of 4 bytes and that many bytes.
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
  // Continues where the last call ended: an event that arrives in many pieces is searched only
  // once.
  const size_t end = bytes.find('\n', std::exchange(searched_, 0));
  if (end != absl::string_view::npos) return {.length = end, .end = end + 1};
  searched_ = bytes.size();
  return {.length = bytes.size()};
}

absl::Status EventSplitter::Feed(absl::string_view bytes,
                                 const std::function<absl::Status(absl::string_view)>& take) {
  absl::StrAppend(&buffer_, bytes);
  absl::string_view rest = buffer_;
  for (;;) {
    // Frames are shorter than 16 MiB, so the first byte of the length is zero. No JSON line starts
    // with that byte.
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
  buffer_.erase(0, buffer_.size() - rest.size());
  return absl::OkStatus();
}

}  // namespace muster::k8s
