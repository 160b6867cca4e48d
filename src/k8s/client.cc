#include "k8s/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "k8s/encoding.h"
#include "k8s/error.h"

namespace muster::k8s {
namespace {

// The token of the next page expires when etcd compacts its revision, by default after 5 to 15
// minutes. A slow reader of a large list gets 410 then.
constexpr int kListTries = 3;
// Ends a list whose server returns ever new tokens.
constexpr int kMaxPages = 100'000;
// A parsed page takes several times as much memory.
constexpr int64_t kMaxPageBytes = int64_t{16} << 20;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Json> ParseResponse(const ApiRequest& request, const net::Response& response) {
  Json json = ParseObject(response.body);
  if (json.is_object()) return json;
  return absl::DataLossError(absl::StrCat("cannot ", request.Describe(),
                                          ": the response is not an object; is the server a "
                                          "Kubernetes API server?"));
}

class LogSink final : public net::BodySink {
 public:
  explicit LogSink(const std::function<absl::Status(absl::string_view)>& take) : take_(take) {}
  absl::Status Write(absl::string_view bytes) override {
    status_ = take_(bytes);
    return status_;
  }
  absl::Status Rewind() override { return absl::InternalError("a log cannot be rewound"); }
  const absl::Status& status() const { return status_; }

 private:
  const std::function<absl::Status(absl::string_view)>& take_;
  absl::Status status_;
};

}  // namespace

net::Headers Selection::Query() const {
  net::Headers query;
  if (!labels.empty()) query.emplace_back("labelSelector", labels);
  if (!fields.empty()) query.emplace_back("fieldSelector", fields);
  return query;
}

absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClusterConfig config,
                                                       ClientOptions options) {
  if (!config.proxy.empty()) options.http.proxy = config.proxy;
  MUSTER_ASSIGN_OR_RETURN(auto http, net::HttpClient::Create(options.http));
  return std::unique_ptr<Client>(
      new Client(std::move(config), std::move(options), std::move(http)));
}

Client::Client(ClusterConfig config, ClientOptions options, std::unique_ptr<net::HttpClient> http)
    : transport_(std::move(config), std::move(options), std::move(http)) {}

ObjectKey Client::WithNamespace(const ResourceKind& kind, ObjectKey key) const {
  if (!kind.namespaced) key.ns.clear();
  if (kind.namespaced && key.ns.empty()) key.ns = ns();
  return key;
}

absl::StatusOr<Json> Client::Write(ApiRequest request, const Json& body) {
  const std::string text = Dump(body);
  request.body = text;
  if (request.call.discard_response) request.detail = Detail::kMetadata;
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, transport_.Send(request));
  if (request.call.discard_response) return Json();
  return ParseResponse(request, response);
}

absl::StatusOr<Json> Client::Get(const ResourceKind& kind, const ObjectKey& key,
                                 const CallOptions& call) {
  const ApiRequest request{
      .verb = "get", .kind = kind, .key = WithNamespace(kind, key), .call = call};
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, transport_.Send(request));
  return ParseResponse(request, response);
}

absl::StatusOr<ObjectList> Client::ListOnce(const ResourceKind& kind, const ListOptions& options,
                                            int64_t page_size) {
  ObjectList list;
  std::string next;
  for (int page = 0; page < kMaxPages; ++page) {
    ApiRequest request{.verb = "list",
                       .kind = kind,
                       .key = {.ns = options.selection.ns},
                       .query = options.selection.Query(),
                       .detail = options.detail,
                       .call = options.call};
    if (page_size > 0) request.query.emplace_back("limit", absl::StrCat(page_size));
    if (!next.empty()) request.query.emplace_back("continue", next);
    if (page_size > 1) request.max_response_bytes = kMaxPageBytes;
    const auto response = transport_.Send(request);
    const bool too_large = absl::IsOutOfRange(response.status()) && !IsGone(response.status());
    // The token names the last object of the previous page, not a number of objects, so the size
    // may change between pages.
    if (too_large && page_size != 1) {
      page_size = page_size == 0 ? std::max<int64_t>(1, options.page_size) : page_size / 2;
      continue;  // the same page, with fewer objects
    }
    MUSTER_RETURN_IF_ERROR(response.status());
    MUSTER_ASSIGN_OR_RETURN(Json json, ParseResponse(request, *response));
    // The same on every page: the server reads all pages of a list at one revision.
    list.resource_version = ResourceVersionOf(json);
    for (Json& item : json["items"]) {
      if (!item.is_object()) continue;
      // The server omits apiVersion and kind from the items of a list.
      item["apiVersion"] = kind.ApiVersion();
      item["kind"] = std::string(kind.kind);
      if (options.transform) options.transform(item);
      list.items.push_back(std::move(item));
    }
    const std::string before = std::exchange(next, TextAt(json, "/metadata/continue"));
    if (next.empty()) return list;
    if (next == before) break;  // a broken server
  }
  return absl::DataLossError(
      absl::StrCat("the server returned the same page of ", kind.plural, " twice"));
}

absl::StatusOr<ObjectList> Client::List(const ResourceKind& kind, const ListOptions& options) {
  for (int tries = 1;; ++tries) {
    const bool last = tries == kListTries;
    // The last attempt reads one page, which cannot expire.
    auto list = ListOnce(kind, options, last ? 0 : options.page_size);
    if (last || !IsGone(list.status())) return list;
  }
}

absl::StatusOr<Json> Client::Create(const ResourceKind& kind, const Json& object,
                                    const CallOptions& call) {
  return Write({.verb = "create",
                .kind = kind,
                .key = WithNamespace(kind, KeyOf(object)),
                .idempotent = false,
                .call = call},
               object);
}

absl::StatusOr<Json> Client::Update(const ResourceKind& kind, const Json& object,
                                    const CallOptions& call) {
  return Write(
      {.verb = "update", .kind = kind, .key = WithNamespace(kind, KeyOf(object)), .call = call},
      object);
}

absl::StatusOr<Json> Client::Patch(const ResourceKind& kind, const ObjectKey& key,
                                   const Json& patch, const CallOptions& call) {
  return Write({.verb = "patch",
                .kind = kind,
                .key = WithNamespace(kind, key),
                .content_type = call.strategic_patch ? "application/strategic-merge-patch+json"
                                                     : "application/merge-patch+json",
                .call = call},
               patch);
}

absl::StatusOr<Json> Client::Apply(const ResourceKind& kind, const Json& object, bool force,
                                   const CallOptions& call) {
  return Write({.verb = "patch",
                .kind = kind,
                .key = WithNamespace(kind, KeyOf(object)),
                .query = {{"fieldManager", transport_.options().field_manager},
                          {"force", force ? "true" : "false"}},
                .content_type = "application/apply-patch+yaml",
                .call = call},
               object);
}

absl::Status Client::Delete(const ResourceKind& kind, const ObjectKey& key,
                            const DeleteOptions& options) {
  constexpr const char* kPolicies[] = {"Background", "Foreground", "Orphan"};
  Json body = {{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", kPolicies[static_cast<int>(options.propagation)]}};
  if (!options.uid.empty()) body["preconditions"] = {{"uid", options.uid}};
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  const std::string text = Dump(body);
  const ApiRequest request{.verb = "delete",
                           .kind = kind,
                           .key = WithNamespace(kind, key),
                           .body = text,
                           .idempotent = !options.uid.empty(),
                           .call = options.call};
  return transport_.Send(request).status();
}

absl::Status Client::ReadLog(const ObjectKey& pod, const LogOptions& options,
                             const std::function<absl::Status(absl::string_view)>& take) {
  LogSink sink(take);
  ApiRequest request{.verb = "get",
                     .kind = kPods,
                     .key = WithNamespace(kPods, pod),
                     .sink = &sink,
                     .call = {.subresource = "log", .stop = options.stop}};
  const auto add = [&](const char* name, const std::string& value) {
    request.query.emplace_back(name, value);
  };
  if (!options.container.empty()) add("container", options.container);
  if (options.follow) add("follow", "true");
  if (options.previous) add("previous", "true");
  if (options.timestamps) add("timestamps", "true");
  if (options.tail_lines) add("tailLines", absl::StrCat(*options.tail_lines));
  if (options.since) add("sinceTime", Timestamp(*options.since));
  // A program may print nothing for days.
  if (options.follow) request.idle_timeout = absl::InfiniteDuration();
  const absl::Status status = transport_.Send(request).status();
  return sink.status().ok() ? status : sink.status();
}

absl::StatusOr<Json> Client::GetPath(const std::string& path, const CallOptions& call) {
  const ApiRequest request{
      .verb = "get", .kind = {.plural = path, .namespaced = false}, .call = call};
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, transport_.SendTo(path, request));
  return ParseResponse(request, response);
}

}  // namespace muster::k8s
