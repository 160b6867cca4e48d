// A small API server for tests: objects with resource versions, lists, watches, and faults.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "k8s/client.h"
#include "k8s/resource.h"
#include "net/testing/server.h"

namespace muster::k8s {

// Serves any kind. One version counter for all objects grows by one with each change.
class ApiServer {
 public:
  ApiServer();
  ~ApiServer();

  std::string address() const { return server_->address(); }
  // NewClient() does not sleep before retries.
  ClusterConfig config() const;
  std::unique_ptr<Client> NewClient(ClientOptions options = {}) const;

  // Change objects as another client would. Put() returns the stored object.
  Json Put(const ResourceKind& kind, Json object);
  void Remove(const ResourceKind& kind, const ObjectKey& key);
  Json Get(const ResourceKind& kind, const ObjectKey& key) const;  // null: not found

  void CutWatches();  // closes all open watches
  void Forget();      // drops the history: older watches get 410
  void SendBookmarks();
  // `intercept` is called for each request first. It returns true if it has sent the response.
  void Intercept(std::function<bool(net::Exchange&)> intercept);

  // Returns "GET /api/v1/…" for each request.
  std::vector<std::string> requests() const;
  int Count(absl::string_view part) const;  // requests that contain `part`
  bool WaitForWatches(int count) const;     // until that many are open

 private:
  struct Path {
    std::string plural;
    ObjectKey key;
    std::map<std::string, std::string> query;
  };
  struct Event {
    int64_t version = 0;
    std::string plural;
    std::string type;
    Json object;
  };

  static Path Parse(const std::string& target);
  void Serve(net::Exchange& exchange);
  void List(net::Exchange& exchange, const Path& path);
  void Watch(net::Exchange& exchange, const Path& path);
  void Write(net::Exchange& exchange, const Path& path);
  void Delete(net::Exchange& exchange, const Path& path);
  Json Store(const std::string& plural, Json object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const std::string& plural, const ObjectKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NextLines(const Path& path, int64_t& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, std::map<ObjectKey, Json>> objects_ ABSL_GUARDED_BY(mutex_);
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
  std::function<bool(net::Exchange&)> intercept_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 100;
  int64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;
  int bookmarks_ ABSL_GUARDED_BY(mutex_) = 0;
  int cuts_ ABSL_GUARDED_BY(mutex_) = 0;
  int watches_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<net::TestServer> server_;
};

// Sends an error response of the API.
void Refuse(net::Exchange& exchange, int code, const std::string& reason,
            const std::string& message, const Json& details = Json::object(),
            const net::Headers& headers = {});
// Send the head of a watch response, and a part of its body.
void BeginStream(net::Exchange& exchange);
void SendChunk(net::Exchange& exchange, absl::string_view bytes);

Json MakePod(const std::string& name, const std::string& ns = "default");

}  // namespace muster::k8s
