// Reads and changes a cluster's objects.
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

// Which objects of a kind.
struct Selection {
  std::string name_space;  // "": all of them
  std::string labels;      // as the API has them: "app=a,tier in (x,y)"; "": all
  std::string fields;      // "status.phase=Running"; "": all

  net::Headers Query() const;
};

struct ListOptions {
  Selection selection = {};
  int64_t page_size = 500;  // at first; of large objects pages hold fewer
  Detail detail = Detail::kAll;
  std::function<void(Json&)> transform = {};  // drops what the caller has no use for
  CallOptions call = {};
};

struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;  // from which a watch goes on
};

struct DeleteOptions {
  enum class Propagation { kBackground, kForeground, kOrphan };
  Propagation propagation = Propagation::kBackground;
  std::string uid;  // only that very object, else Conflict
  std::optional<int64_t> grace_seconds = std::nullopt;
  CallOptions call = {};
};

struct LogOptions {
  std::string container;  // "": the only one
  bool follow = false;    // until the container ends
  bool previous = false;  // of the one before the last restart
  bool timestamps = false;
  std::optional<int64_t> tail_lines = std::nullopt;
  std::optional<absl::Time> since = std::nullopt;
  std::stop_token stop = {};
};

// Thread-safe. Errors are as error.h has them, and those of Transport::Send(). An object without a
// namespace, of a kind that has them, is in the configuration's.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClusterConfig config,
                                                        ClientOptions options = {});

  const std::string& name_space() const { return transport_.config().name_space; }

  absl::StatusOr<Json> Get(const ResourceKind& kind, const ObjectKey& key,
                           const CallOptions& call = {});
  // All pages; begins again when the list expires in the middle.
  absl::StatusOr<ObjectList> List(const ResourceKind& kind, const ListOptions& options = {});
  // Not repeated when it may have been carried out: then Unavailable, and the caller looks.
  absl::StatusOr<Json> Create(const ResourceKind& kind, const Json& object,
                              const CallOptions& call = {});
  // Replaces it; Conflict when it has another resourceVersion than `object`.
  absl::StatusOr<Json> Update(const ResourceKind& kind, const Json& object,
                              const CallOptions& call = {});
  // A JSON merge patch: members that are null are removed, lists replaced; unless it is strategic.
  absl::StatusOr<Json> Patch(const ResourceKind& kind, const ObjectKey& key, const Json& patch,
                             const CallOptions& call = {});
  // Creates it or makes it so (server-side apply). Conflict when fields are another manager's,
  // unless `force`.
  absl::StatusOr<Json> Apply(const ResourceKind& kind, const Json& object, bool force,
                             const CallOptions& call = {});
  // Asks for its deletion. Without a uid it is not repeated when it may have been carried out.
  absl::Status Delete(const ResourceKind& kind, const ObjectKey& key,
                      const DeleteOptions& options = {});
  // Hands a container's output over as it comes, in pieces that need not end with a line. An error
  // of `take` ends it. Unavailable when the connection is cut: LogOptions::since goes on.
  absl::Status ReadLog(const ObjectKey& pod, const LogOptions& options,
                       const std::function<absl::Status(absl::string_view)>& take);
  // What stands at a path of the API: "/version", "/apis/kubeflow.org/v1".
  absl::StatusOr<Json> GetPath(const std::string& path, const CallOptions& call = {});

  Transport& transport() { return transport_; }

 private:
  Client(ClusterConfig config, ClientOptions options, std::unique_ptr<net::HttpClient> http);
  // With the namespace that it is in.
  ObjectKey Placed(const ResourceKind& kind, ObjectKey key) const;
  absl::StatusOr<Json> Write(ApiRequest request, const Json& body);
  absl::StatusOr<ObjectList> ListOnce(const ResourceKind& kind, const ListOptions& options,
                                      int64_t page_size);

  Transport transport_;
};

}  // namespace muster::k8s
