// Requests to HDFS over WebHDFS, and what its answers mean.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/variables.h"
#include "net/http_client.h"
#include "storage/file_system.h"
#include "storage/hdfs/json.h"

namespace muster::storage {

struct HdfsOptions {
  bool https = false;
  std::string user;        // who we say we are; "": nobody
  std::string token;       // a delegation token, instead of the user
  std::string token_file;  // or where it stands; read again for every request
  // Of clusters with several namenodes: their host:port by the name that URLs have.
  std::map<std::string, std::vector<std::string>> namenodes;
  int64_t chunk_bytes = 16 << 20;  // what is sent, and repeated, at a time
  net::HttpOptions http;

  // HADOOP_USER_NAME, else the user of this process; MUSTER_HDFS_TOKEN, MUSTER_HDFS_TOKEN_FILE;
  // MUSTER_HDFS_HTTPS; MUSTER_HDFS_NAMENODES: "cluster=host:port,host:port", several with spaces
  // between them.
  static absl::StatusOr<HdfsOptions> FromVariables(const Variables& variables);
};

struct HdfsRequest {
  std::string method = "GET";
  Url url;  // a slash at its end is not sent
  std::string op;
  std::vector<std::pair<std::string, std::string>> query;  // not encoded
  absl::string_view body;                                  // of Transfer() alone
  net::BodySink* sink = nullptr;
  int64_t max_response_bytes = 16 << 20;
};

// Thread-safe.
class HdfsClient {
 public:
  HdfsClient(HdfsOptions options, std::unique_ptr<net::HttpClient> http)
      : options_(std::move(options)), http_(std::move(http)) {}

  // The namenode's answer. Of several that one is asked which answered last; when it does not, or
  // is a standby, the next.
  absl::StatusOr<net::Response> Ask(const HdfsRequest& request);
  // For OPEN, CREATE and APPEND: the namenode names a datanode, which is asked once; the body goes
  // to it alone. Its answer, 2xx; else the error that it means.
  absl::StatusOr<net::Response> Transfer(const HdfsRequest& request);

  // Of a file or folder. NotFound when there is none.
  absl::StatusOr<HdfsStatus> Lookup(const Url& url);
  // Moves `file`, which is at `from`, at once.
  absl::Status Rename(const Url& from, const HdfsStatus& file, const Url& to, IfExists if_exists);

  // The error that an answer other than 2xx means.
  absl::Status ErrorOf(const Url& url, const net::Response& response) const;

  const HdfsOptions& options() const { return options_; }

 private:
  absl::StatusOr<std::string> Token() const;
  absl::StatusOr<std::string> QueryOf(const HdfsRequest& request) const;
  std::vector<std::string> NamenodesOf(const Url& url) const;
  size_t Preferred(const std::string& place);
  void Prefer(const std::string& place, size_t node);

  const HdfsOptions options_;
  const std::unique_ptr<net::HttpClient> http_;
  absl::Mutex mutex_;
  std::map<std::string, size_t> preferred_ ABSL_GUARDED_BY(mutex_);  // by place
};

// Waits between the tries of one thing: each time longer, a random part of it.
class HdfsBackoff {
 public:
  HdfsBackoff(const net::HttpOptions& options, int tries)
      : options_(options), tries_(tries), end_(options.clock->Now() + options.retry.patience) {}

  // False, at once, when that was the last try.
  bool Wait();

 private:
  const net::HttpOptions& options_;
  const int tries_;
  const absl::Time end_;
  int done_ = 0;
};

// The name without the slash at its end.
Url WithoutSlash(const Url& url);
// What is there is no file of this name because something above it is no folder, or it is not there
// at all.
bool IsAbsence(const net::Response& response);

}  // namespace muster::storage
