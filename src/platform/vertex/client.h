// Client of Vertex AI and of Cloud Logging.
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
  std::string vertex;  // "": the regional endpoint
  std::string logging = "https://logging.googleapis.com";
  net::HttpOptions http;

  // Reads CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM and …_LOGGING, as gcloud does. Returns
  // InvalidArgument if an endpoint is not over TLS, because credentials are sent to it.
  static absl::StatusOr<ClientOptions> FromVariables(const base::Variables& variables);
};

// One log entry of a job; may have several lines.
struct LogEntry {
  std::string timestamp;  // as the service formats it, with nanoseconds
  std::string insert_id;  // distinguishes and orders entries of the same time
  std::string severity;   // "INFO"; "": none
  std::string task;       // "workerpool0-0", or "service"
  std::string message;
};

struct LogPage {
  std::vector<LogEntry> entries;
  std::string next;  // token of the next page; "": this is the last
};

// Selects log entries of a job.
struct LogQuery {
  std::string job;                                   // job number
  std::optional<absl::Time> from = {}, before = {};  // range of timestamps
  std::string task = {};                             // "": all
};
// Returns the query in the filter language of Cloud Logging.
std::string LogFilter(const LogQuery& query);

// Returns the number at the end of a resource name: "projects/P/locations/R/customJobs/123".
absl::string_view JobNumber(absl::string_view resource_name);

// Errors contain the remedy and the command that applies it:
//   Unauthenticated      no credentials, or Google rejects them
//   PermissionDenied     a role is missing
//   FailedPrecondition   API disabled, billing off, unknown project or region, or another reason to
//                        reject the request
//   ResourceExhausted    quota
//   NotFound             the service itself reports that this job does not exist
//   Unavailable          no answer
// Thread-safe.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Create(const base::Variables& variables);

  // Returns OK if credentials exist and Google issues a token for them.
  absl::Status SignIn() { return credentials_.Get().status(); }

  // Returns the new job. Returns Unavailable if there was no answer; the job may exist then.
  absl::StatusOr<nlohmann::json> CreateJob(const std::string& project, const std::string& region,
                                           const nlohmann::ordered_json& job);
  // Returns NotFound only if two requests in a row report it, because a job's verdict depends on
  // it.
  absl::StatusOr<nlohmann::json> GetJob(const std::string& resource_name,
                                        std::stop_token stop = {});
  // Returns all jobs that match the filter, from all pages.
  absl::StatusOr<std::vector<nlohmann::json>> ListJobs(const std::string& project,
                                                       const std::string& region,
                                                       const std::string& filter = "");
  absl::Status CancelJob(const std::string& resource_name);
  // Returns one page in order of time. `page` is LogPage::next of the previous page with the same
  // filter, or "" for the first.
  absl::StatusOr<LogPage> ListLog(const std::string& project, const std::string& filter,
                                  const std::string& page, std::stop_token stop = {});
  // Returns the last `count` entries in order of time. Sends one request with a short timeout.
  absl::StatusOr<std::vector<LogEntry>> TailLog(const std::string& project,
                                                const std::string& filter, int count);

 private:
  struct Call;
  Client(ClientOptions options, std::unique_ptr<net::HttpClient> http,
         const base::Variables& variables);
  absl::StatusOr<nlohmann::json> Send(const Call& call);
  absl::StatusOr<LogPage> SendLog(const std::string& project, const nlohmann::json& body,
                                  Call call);
  std::string AddressOf(absl::string_view region) const;

  const ClientOptions options_;
  const std::string member_;  // our identity, as an IAM member
  const std::unique_ptr<net::HttpClient> http_;
  storage::GoogleCredentialChain credentials_;
};

}  // namespace muster::vertex
