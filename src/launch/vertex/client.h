// Requests to Vertex AI and to Cloud Logging, and what their answers mean.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/variables.h"
#include "net/http_client.h"
#include "nlohmann/json.hpp"
#include "storage/gs/credentials.h"

namespace muster::vertex {

struct ClientOptions {
  std::string vertex;  // "": that of each region
  std::string logging = "https://logging.googleapis.com";
  net::HttpOptions http;

  // CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM and …_LOGGING, as gcloud has it. InvalidArgument
  // when one is not over TLS: credentials are sent there.
  static absl::StatusOr<ClientOptions> FromVariables(const Variables& variables);
};

// One line or more of what a job says.
struct LogEntry {
  std::string timestamp;  // as the service writes it: to the nanosecond
  std::string insert_id;  // orders and tells apart those of the same time
  std::string severity;   // "INFO"; "": none
  std::string task;       // "workerpool0-0", or "service"
  std::string message;
};

struct LogPage {
  std::vector<LogEntry> entries;
  std::string next;  // where the next page begins; "": this is the last
};

// Which entries of a job.
struct LogQuery {
  std::string job;                                   // its number
  std::optional<absl::Time> from = {}, before = {};  // when they were said
  std::string task = {};                             // "": all
};
std::string LogFilter(const LogQuery& query);

// Where a job is: "projects/P/locations/R/customJobs/123", of which the number is the last.
absl::string_view JobNumber(absl::string_view resource_name);

// Errors say what to do, and name the command that does it:
//   Unauthenticated      no credentials, or such as Google does not take
//   PermissionDenied     the role that is missing
//   FailedPrecondition   the API is not enabled, billing is off, there is no such project or
//   region,
//                        or what else the service does not like of the request
//   ResourceExhausted    quota
//   NotFound             no such job: the service itself said so of that very job
//   Unavailable          it did not answer
// Thread-safe.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Create(const Variables& variables);

  // That we have credentials, and Google takes them.
  absl::Status SignIn() { return credentials_.Get().status(); }

  // The job that was made. Unavailable when there was no answer: it may be there.
  absl::StatusOr<nlohmann::json> CreateJob(const std::string& project, const std::string& region,
                                           const nlohmann::ordered_json& job);
  // NotFound only when it is said twice: a verdict on a job hangs on it.
  absl::StatusOr<nlohmann::json> GetJob(const std::string& resource_name,
                                        std::stop_token stop = {});
  // All of them, or those that the filter lets through, over all pages.
  absl::StatusOr<std::vector<nlohmann::json>> ListJobs(const std::string& project,
                                                       const std::string& region,
                                                       const std::string& filter = "");
  absl::Status CancelJob(const std::string& resource_name);
  // `page` is that of the page before, with the same filter; "" for the first.
  absl::StatusOr<LogPage> ListLog(const std::string& project, const std::string& filter,
                                  const std::string& page, std::stop_token stop = {});
  // The last entries, in the order of their time. Asks once, and does not wait for long.
  absl::StatusOr<std::vector<LogEntry>> TailLog(const std::string& project,
                                                const std::string& filter, int count);

 private:
  struct Call;
  Client(ClientOptions options, std::unique_ptr<net::HttpClient> http, const Variables& variables);
  absl::StatusOr<nlohmann::json> Send(const Call& call);
  absl::StatusOr<LogPage> SendLog(const std::string& project, const nlohmann::json& body,
                                  Call call);
  std::string AddressOf(absl::string_view region) const;

  const ClientOptions options_;
  const std::string member_;  // who we are, as roles are given to
  const std::unique_ptr<net::HttpClient> http_;
  storage::GoogleCredentialChain credentials_;
};

}  // namespace muster::vertex
