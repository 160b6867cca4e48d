// Reads and writes the objects of a cluster.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "k8s/config.h"
#include "k8s/request.h"
#include "k8s/resource.h"
#include "k8s/transport.h"

namespace muster::k8s {

// A subset of the objects of a kind.
struct Selection {
  std::string ns;      // "": all namespaces
  std::string labels;  // a label selector: "app=a,tier in (x,y)"; "": all
  std::string fields;  // "status.phase=Running"; "": all

  net::Headers Query() const;
};

struct ListOptions {
  Selection selection = {};
  int64_t page_size = 500;  // reduced for large objects
  Detail detail = Detail::kAll;
  std::function<void(Json&)> transform = {};  // drops members that the caller does not need
  CallOptions call = {};
};

struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;  // where a watch continues
};

struct DeleteOptions {
  enum class Propagation { kBackground, kForeground, kOrphan };
  Propagation propagation = Propagation::kBackground;
  std::string uid;  // precondition, else Conflict; "": none
  std::optional<int64_t> grace_seconds = std::nullopt;
  CallOptions call = {};
};

struct LogOptions {
  std::string container;  // "": the only one
  bool follow = false;    // until the container exits
  bool previous = false;  // of the instance before the last restart
  bool timestamps = false;
  std::optional<int64_t> tail_lines = std::nullopt;
  std::optional<absl::Time> since = std::nullopt;
  std::stop_token stop = {};
};

// Thread-safe. Returns the errors of error.h and of Transport::Send(). An object of a namespaced
// kind without a namespace is in the namespace of the configuration.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClusterConfig config,
                                                        ClientOptions options = {});

  const std::string& ns() const { return transport_.config().ns; }

  absl::StatusOr<Json> Get(const ResourceKind& kind, const ObjectKey& key,
                           const CallOptions& call = {});
  // Reads all pages. Starts over if the list expires between two pages.
  absl::StatusOr<ObjectList> List(const ResourceKind& kind, const ListOptions& options = {});
  // Not retried if the server may have executed it. It then returns Unavailable, and the caller
  // must check.
  absl::StatusOr<Json> Create(const ResourceKind& kind, const Json& object,
                              const CallOptions& call = {});
  // Replaces the object. Returns Conflict if its resourceVersion differs from that of `object`.
  absl::StatusOr<Json> Update(const ResourceKind& kind, const Json& object,
                              const CallOptions& call = {});
  // Applies a JSON merge patch, which removes members that are null and replaces lists, or a
  // strategic merge patch if CallOptions::strategic_patch is set.
  absl::StatusOr<Json> Patch(const ResourceKind& kind, const ObjectKey& key, const Json& patch,
                             const CallOptions& call = {});
  // Creates or updates the object by server-side apply. Returns Conflict if another manager owns
  // fields, unless `force`.
  absl::StatusOr<Json> Apply(const ResourceKind& kind, const Json& object, bool force,
                             const CallOptions& call = {});
  // Requests the deletion. Without a uid it is not retried if the server may have executed it.
  absl::Status Delete(const ResourceKind& kind, const ObjectKey& key,
                      const DeleteOptions& options = {});
  // Passes the output of a container to `take` as it arrives, in pieces that need not be whole
  // lines. An error of `take` ends it. Returns Unavailable if the connection is lost;
  // LogOptions::since continues from there.
  absl::Status ReadLog(const ObjectKey& pod, const LogOptions& options,
                       const std::function<absl::Status(absl::string_view)>& take);
  // Returns the object at a path of the API: "/version", "/apis/kubeflow.org/v1".
  absl::StatusOr<Json> GetPath(const std::string& path, const CallOptions& call = {});

  Transport& transport() { return transport_; }

 private:
  Client(ClusterConfig config, ClientOptions options, std::unique_ptr<net::HttpClient> http);
  // Returns the key with the namespace filled in, or cleared for a cluster-scoped kind.
  ObjectKey WithNamespace(const ResourceKind& kind, ObjectKey key) const;
  absl::StatusOr<Json> Write(ApiRequest request, const Json& body);
  absl::StatusOr<ObjectList> ListOnce(const ResourceKind& kind, const ListOptions& options,
                                      int64_t page_size);

  Transport transport_;
};

}  // namespace muster::k8s
