#include "k8s/encoding.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::k8s {
namespace {

using testing::ElementsAre;

// Protobuf encodings of a varint and of message fields.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Number(uint64_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
std::string Bytes(uint64_t field, const std::string& content) {
  return Varint(field << 3 | 2) + Varint(content.size()) + content;
}
// Wraps an object as the server does.
std::string Wrapped(const std::string& api_version, const std::string& kind,
                    const std::string& object) {
  return std::string("k8s\0", 4) + Bytes(1, Bytes(1, api_version) + Bytes(2, kind)) +
         Bytes(2, object) + Bytes(3, "") + Bytes(4, "");
}

// 2020-09-13T12:26:40Z plus half a second, which JSON omits.
const std::string kTime = Number(1, 1600000000) + Number(2, 500000000);

std::string MakePodBytes() {
  const std::string owner = Bytes(1, "TFJob") + Bytes(3, "job") + Bytes(4, "u-1") + Number(6, 1);
  const std::string metadata =
      Bytes(1, "a") + Bytes(2, "") + Bytes(3, "space") + Bytes(4, "/self/link") + Bytes(5, "u-2") +
      Bytes(6, "7") + Bytes(8, kTime) + Number(10, 30) +
      Bytes(11, Bytes(1, "app") + Bytes(2, "x")) + Bytes(11, Bytes(1, "empty")) + Bytes(13, owner) +
      Bytes(17, Bytes(1, "kubelet"));
  const std::string terminated = Number(1, 0) + Bytes(3, "Completed") + Bytes(6, kTime);
  const std::string container = Bytes(1, "tensorflow") + Bytes(2, Bytes(3, terminated)) +
                                Bytes(3, "") + Number(4, 0) + Number(5, 2) + Bytes(6, "image:1");
  const std::string status = Bytes(1, "Succeeded") +
                             Bytes(2, Bytes(1, "Ready") + Bytes(2, "False") + Bytes(3, "")) +
                             Bytes(3, "") + Bytes(8, container);
  return Wrapped("v1", "Pod", Bytes(1, metadata) + Bytes(2, "a spec") + Bytes(3, status));
}

const Json kPodJson = Json::parse(R"({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {
    "name": "a", "namespace": "space", "uid": "u-2", "resourceVersion": "7",
    "creationTimestamp": "2020-09-13T12:26:40Z", "deletionGracePeriodSeconds": 30,
    "labels": {"app": "x", "empty": ""},
    "ownerReferences": [{"kind": "TFJob", "name": "job", "uid": "u-1", "controller": true}]},
  "status": {
    "phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}],
    "containerStatuses": [{
      "name": "tensorflow", "ready": false, "restartCount": 2, "lastState": {},
      "state": {"terminated": {"exitCode": 0, "reason": "Completed",
                               "finishedAt": "2020-09-13T12:26:40Z"}}}]}})");

TEST(ParseObjectTest, APodFromProtobuf) { EXPECT_EQ(ParseObject(MakePodBytes()), kPodJson); }

TEST(ParseObjectTest, AListFromProtobuf) {
  const std::string item = Bytes(1, Bytes(1, "a"));
  EXPECT_EQ(ParseObject(Wrapped("meta.k8s.io/v1", "PartialObjectMetadataList",
                                Bytes(1, Bytes(2, "9") + Bytes(3, "next") + Number(4, 500)) +
                                    Bytes(2, item) + Bytes(2, item))),
            Json::parse(R"({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
      "metadata": {"resourceVersion": "9", "continue": "next", "remainingItemCount": 500},
      "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]})"));
}

TEST(ParseObjectTest, AStatusFromProtobuf) {
  const std::string cause = Bytes(1, "Required") + Bytes(2, "is missing") + Bytes(3, "spec.x");
  EXPECT_EQ(ParseObject(Wrapped("v1", "Status",
                                Bytes(2, "Failure") + Bytes(3, "no") + Bytes(4, "Invalid") +
                                    Bytes(5, Bytes(1, "a") + Bytes(4, cause) + Number(5, 3)) +
                                    Number(6, 422))),
            Json::parse(R"({"apiVersion": "v1", "kind": "Status", "status": "Failure",
      "message": "no", "reason": "Invalid", "code": 422,
      "details": {"name": "a", "retryAfterSeconds": 3,
                  "causes": [{"reason": "Required", "message": "is missing", "field": "spec.x"}]}})"));
}

TEST(ParseObjectTest, DropsValuesNestedTooDeeply) {
  const std::string deep = absl::StrCat("{\"a\":", std::string(100'000, '['),
                                        std::string(100'000, ']'), ",\"b\":\"[[\\\"[[\"}");
  const Json object = ParseObject(deep);
  ASSERT_TRUE(object.is_object());
  EXPECT_EQ(object["b"], "[[\"[[");
  EXPECT_LT(object.dump().size(), 1000);
  const Json event = ParseEvent(absl::StrCat("{\"type\":\"ADDED\",\"object\":", deep, "}"));
  ASSERT_TRUE(event.is_object());
  EXPECT_LT(event.dump().size(), 1000);
}

TEST(ParseObjectTest, JsonIsUnchanged) {
  const Json object = {{"metadata", {{"managedFields", {1}}}}, {"data", {{"managedFields", "x"}}}};
  EXPECT_EQ(ParseObject(object.dump()), object);
}

TEST(ParseObjectTest, DiscardsInvalidBytes) {
  const std::string pod = MakePodBytes();
  for (size_t size = 0; size < pod.size(); ++size) {  // some prefixes are a valid, smaller pod
    const Json read = ParseObject(pod.substr(0, size));
    EXPECT_TRUE(read.is_discarded() || read.is_object()) << size;
  }
  for (const std::string& bytes :
       {std::string(), std::string("k8s\0", 4), Wrapped("v1", "Secret", Bytes(1, "")),
        Wrapped("v1", "Pod", Number(1, 5)), Wrapped("v1", "Pod", Bytes(1, Bytes(7, "x"))),
        Wrapped("v1", "Pod", "\x0a\x7f"), Wrapped("v1", "Pod", std::string("\0\0", 2))}) {
    EXPECT_TRUE(ParseObject(bytes).is_discarded()) << bytes;
  }
}

TEST(ParseEventTest, FromProtobuf) {
  EXPECT_EQ(ParseEvent(Bytes(1, "ADDED") + Bytes(2, Bytes(1, MakePodBytes()))),
            Json({{"type", "ADDED"}, {"object", kPodJson}}));
  EXPECT_TRUE(ParseEvent(Bytes(1, "ADDED")).is_discarded());
}

TEST(ParseEventTest, FromJsonWithoutManagedFields) {
  const Json event = Json::parse(R"({"type": "ADDED", "object": {
    "metadata": {"name": "a", "managedFields": [{"manager": "kubelet"}],
                 "labels": {"managedFields": "of a label"}}}})");
  EXPECT_EQ(ParseEvent(event.dump()), Json::parse(R"({"type": "ADDED", "object": {
    "metadata": {"name": "a", "labels": {"managedFields": "of a label"}}}})"));
}

// Returns the events of a stream that arrives in pieces of `size`.
std::vector<std::string> Split(const std::string& stream, size_t piece, size_t max_event) {
  EventSplitter splitter(max_event);
  std::vector<std::string> events;
  for (size_t at = 0; at < stream.size(); at += piece) {
    const absl::Status fed =
        splitter.Feed(absl::string_view(stream).substr(at, piece), [&](absl::string_view event) {
          events.emplace_back(event);
          return absl::OkStatus();
        });
    if (!fed.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(fed)) << fed;
      events.emplace_back("too long");
      return events;
    }
  }
  return events;
}

TEST(EventSplitterTest, SplitsLinesAtAnyPieceSize) {
  const std::string stream = "one\n\ntwo\nthree";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    EXPECT_THAT(Split(stream, piece, 5), ElementsAre("one", "", "two"));
    EXPECT_THAT(Split(stream, piece, 3), ElementsAre("one", "", "two", "too long"));
  }
}

TEST(EventSplitterTest, SplitsFramesAtAnyPieceSize) {
  const auto frame = [](const std::string& content) {
    return std::string("\0\0\0", 3) + static_cast<char>(content.size()) + content;
  };
  const std::string stream = absl::StrCat(frame("one\n"), frame(""), frame("two"), frame("four-"));
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    EXPECT_THAT(Split(stream, piece, 5), ElementsAre("one\n", "", "two", "four-"));
    EXPECT_THAT(Split(stream, piece, 4), ElementsAre("one\n", "", "two", "too long"));
  }
}

}  // namespace
}  // namespace muster::k8s
