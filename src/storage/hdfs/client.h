// A client of HDFS over WebHDFS.
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
  std::string user;        // sent as user.name; "" for none
  std::string token;       // a delegation token, sent instead of the user
  std::string token_file;  // a file with the token; read for every request
  // host:port of the web server of each namenode, by the authority used in URLs. A authority that
  // is not here is itself that of a web server.
  std::map<std::string, std::vector<std::string>> namenodes;
  // The authority of URLs without one (hdfs:///path), or why there is none.
  absl::StatusOr<std::string> default_authority =
      absl::FailedPreconditionError("names no namenode");
  int64_t chunk_bytes = 16 << 20;  // the unit of sending and of retrying
  net::HttpOptions http;

  // Reads HADOOP_USER_NAME (default: the user of this process), MUSTER_HDFS_TOKEN,
  // MUSTER_HDFS_TOKEN_FILE, MUSTER_HDFS_HTTPS and MUSTER_HDFS_NAMENODES, a space-separated list of
  // "cluster=host:port,host:port", and the configuration in HADOOP_CONF_DIR.
  static absl::StatusOr<HdfsOptions> FromVariables(const base::Variables& variables);
};

struct HdfsRequest {
  std::string method = "GET";
  Url url;  // a trailing slash is not sent
  std::string op;
  std::vector<std::pair<std::string, std::string>> query;  // not encoded
  absl::string_view body;                                  // for Transfer() only
  net::BodySink* sink = nullptr;
  int64_t max_response_bytes = 16 << 20;
};

// Thread-safe.
class HdfsClient {
 public:
  // Uses the settings described in docs/storage.md.
  static absl::StatusOr<std::unique_ptr<HdfsClient>> FromVariables(
      const base::Variables& variables);
  HdfsClient(HdfsOptions options, std::unique_ptr<net::HttpClient> http)
      : options_(std::move(options)), http_(std::move(http)) {}

  // Returns the namenode's response. Starts with the namenode that responded last, and tries the
  // next one if it does not respond or is a standby.
  absl::StatusOr<net::Response> Send(const HdfsRequest& request);
  // For OPEN, CREATE and APPEND: the namenode redirects to a datanode, which gets the request with
  // the body, once. Returns the datanode's response if it is 2xx, else its error.
  absl::StatusOr<net::Response> Transfer(const HdfsRequest& request);

  // Returns the status of a file or folder, or NotFound.
  absl::StatusOr<HdfsStatus> Lookup(const Url& url);
  // Makes a folder and its parents. Returns whether it is new.
  absl::StatusOr<bool> MakeFolder(const Url& url);
  // Renames `file`, which is at `from`, atomically.
  absl::Status Rename(const Url& from, const HdfsStatus& file, const Url& to, IfExists if_exists);

  // Returns the error of a response; OK for status 2xx.
  absl::Status ErrorOf(const Url& url, const net::Response& response) const;

  const HdfsOptions& options() const { return options_; }

 private:
  absl::StatusOr<std::string> Token() const;
  absl::StatusOr<std::string> QueryOf(const HdfsRequest& request) const;
  // Returns the addresses of the web servers of the URL's namenodes.
  absl::StatusOr<std::vector<std::string>> NamenodesOf(const Url& url) const;
  absl::Status Explain(const Url& url, const absl::Status& status) const;
  size_t Preferred(const std::string& authority);
  void Prefer(const std::string& authority, size_t node);

  const HdfsOptions options_;
  const std::unique_ptr<net::HttpClient> http_;
  absl::Mutex mutex_;
  std::map<std::string, size_t> preferred_ ABSL_GUARDED_BY(mutex_);  // by authority
};

// Exponential backoff with jitter between the attempts of one operation.
class HdfsBackoff {
 public:
  HdfsBackoff(const net::HttpOptions& options, int tries)
      : options_(options),
        tries_(tries),
        end_(options.clock->Now() + options.retry.total_timeout) {}

  // Sleeps and returns true, or returns false immediately if no attempt is left.
  bool Wait();

 private:
  const net::HttpOptions& options_;
  const int tries_;
  const absl::Time end_;
  int done_ = 0;
};

// Returns the URL without a trailing slash.
Url WithoutSlash(const Url& url);
// Returns whether the response means that the file does not exist, including the case that a parent
// is not a folder.
bool IsAbsence(const net::Response& response);

}  // namespace muster::storage
