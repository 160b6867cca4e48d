#include "k8s/watch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "k8s/encoding.h"
#include "k8s/error.h"

namespace muster::k8s {
namespace {

// Ten times the size to which etcd limits an object by default.
constexpr size_t kMaxEvent = 16 << 20;
// A connection that lasted at least this long was healthy, even without an event.
constexpr absl::Duration kMinHealthyWatch = absl::Seconds(10);

std::optional<WatchEvent::Type> TypeOf(const std::string& word) {
  if (word == "ADDED") return WatchEvent::Type::kAdded;
  if (word == "MODIFIED") return WatchEvent::Type::kModified;
  if (word == "DELETED") return WatchEvent::Type::kDeleted;
  if (word == "BOOKMARK") return WatchEvent::Type::kBookmark;
  return std::nullopt;
}

// Receives the events of one connection.
class EventSink final : public net::BodySink {
 public:
  EventSink(const ApiRequest& request, const std::function<absl::Status(WatchEvent)>& handler,
            std::string& version)
      : request_(request), handler_(handler), version_(version), events_(kMaxEvent) {}

  absl::Status Write(absl::string_view bytes) override {
    status_ = events_.Feed(bytes, [this](absl::string_view event) { return HandleEvent(event); });
    if (absl::IsResourceExhausted(status_) && !ApiErrorOf(status_)) {
      status_ = base::Annotate(status_, absl::StrCat("cannot ", request_.Describe()));
    }
    return status_;
  }
  absl::Status Rewind() override { return absl::InternalError("a watch cannot be rewound"); }

  const absl::Status& status() const { return status_; }
  bool received_any() const { return received_any_; }

 private:
  absl::Status HandleEvent(absl::string_view event) {
    if (event.empty()) return absl::OkStatus();
    Json json = ParseEvent(event);
    const std::string word = TextAt(json, "/type");
    const Json* object = Find(json, "/object");
    if (word == "ERROR" && object != nullptr) {
      const Json* code = Find(*object, "/code");
      const bool has_code = code != nullptr && code->is_number_integer();
      return ErrorOf(request_, has_code ? code->get<int>() : 500, *object);
    }
    const auto type = TypeOf(word);
    const std::string version = object == nullptr ? "" : ResourceVersionOf(*object);
    if (!type.has_value() || version.empty()) {
      return absl::DataLossError(absl::StrCat(
          "cannot ", request_.Describe(),
          ": the server sent an invalid event: ", net::ServerMessage(event.substr(0, 400))));
    }
    // The server sends the kind PartialObjectMetadata.
    if (request_.detail == Detail::kMetadata) {
      json["object"]["apiVersion"] = request_.kind.ApiVersion();
      json["object"]["kind"] = std::string(request_.kind.kind);
    }
    MUSTER_RETURN_IF_ERROR(handler_({.type = *type, .object = std::move(json["object"])}));
    version_ = version;  // a reconnect continues after this event
    received_any_ = true;
    return absl::OkStatus();
  }

  const ApiRequest& request_;
  const std::function<absl::Status(WatchEvent)>& handler_;
  std::string& version_;
  EventSplitter events_;
  absl::Status status_;
  bool received_any_ = false;
};

ApiRequest RequestFor(const ResourceKind& kind, const WatchOptions& options,
                      const std::string& version) {
  ApiRequest request{.verb = "watch",
                     .kind = kind,
                     .key = {.ns = options.selection.ns},
                     .query = options.selection.Query(),
                     .idle_timeout = options.idle_timeout,
                     .detail = options.detail,
                     .call = {.stop = options.stop}};
  request.query.emplace_back("watch", "true");
  request.query.emplace_back("allowWatchBookmarks", "true");
  if (!version.empty()) request.query.emplace_back("resourceVersion", version);
  const int64_t seconds = std::max<int64_t>(1, absl::ToInt64Seconds(options.duration));
  request.query.emplace_back("timeoutSeconds", absl::StrCat(seconds));
  return request;
}

absl::Duration DelayAfter(int failures, const WatchOptions& options, const absl::Status& status) {
  const absl::Duration delay =
      std::min(options.max_delay, options.first_delay * std::exp2(std::min(failures - 1, 20)));
  const auto error = ApiErrorOf(status);
  return std::max(delay, error ? error->retry_after.value_or(delay) : delay);
}

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

}  // namespace

absl::Status Watch(Client& client, const ResourceKind& kind, const WatchOptions& options,
                   const std::function<absl::Status(WatchEvent)>& handler) {
  std::string version = options.resource_version;
  for (int failures = 0;;) {
    ApiRequest request = RequestFor(kind, options, version);
    EventSink sink(request, handler, version);
    request.sink = &sink;
    const absl::Time begin = absl::Now();
    absl::Status status = client.transport().Send(request).status();
    if (!sink.status().ok()) return sink.status();
    if (options.stop.stop_requested()) return absl::CancelledError("interrupted");
    if (!status.ok() && !IsTransient(status)) return status;
    failures = sink.received_any() || absl::Now() - begin > kMinHealthyWatch ? 0 : failures + 1;
    if (failures >= options.tries) {
      return status.ok() ? absl::UnavailableError(
                               absl::StrCat("cannot ", request.Describe(),
                                            ": the server closes the connection immediately"))
                         : status;
    }
    // The server closed the connection after `timeoutSeconds`, as requested.
    if (status.ok() && failures == 0) continue;
    if (!SleepUnlessStopped(DelayAfter(std::max(failures, 1), options, status), options.stop)) {
      return absl::CancelledError("interrupted");
    }
  }
}

}  // namespace muster::k8s
