#include "platform/vertex/client.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "platform/vertex/errors.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

constexpr int kJobsPerPage = 100;
constexpr int kEntriesPerPage = 1000;
constexpr int kMaxPages = 10'000;
constexpr int64_t kMaxAnswer = 64 << 20;
constexpr absl::Duration kTryTimeout = absl::Seconds(60);
constexpr absl::Duration kCallTimeout = absl::Seconds(90);
constexpr absl::Duration kTailTimeout = absl::Seconds(5);
constexpr absl::Duration kNotFoundRetryDelay = absl::Seconds(1);

absl::Status ReadEndpoint(const base::Variables& variables, const char* name,
                          std::string* endpoint) {
  const std::string given = variables(name);
  if (given.empty()) return absl::OkStatus();
  absl::string_view address = given;
  while (absl::ConsumeSuffix(&address, "/")) {
  }
  if (!net::IsSafeForSecrets(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must begin with https://: credentials are sent there"));
  }
  *endpoint = std::string(address);
  return absl::OkStatus();
}

// Returns R of "projects/P/locations/R/…", or "" if the name has another form.
std::string RegionOf(absl::string_view resource_name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(resource_name, '/');
  return parts.size() > 3 ? std::string(parts[3]) : "";
}

std::string ProjectOf(absl::string_view resource_name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(resource_name, '/');
  return parts.size() > 1 ? std::string(parts[1]) : "";
}

// Returns the text payload, the message of a structured payload, or else the whole payload as JSON.
std::string MessageOf(const Json& entry) {
  const Json& structured = base::MemberOf(entry, "jsonPayload");
  if (!structured.is_object()) return base::TextMember(entry, "textPayload");
  const Json& message = base::MemberOf(structured, "message");
  return message.is_string() ? message.get<std::string>()
                             : structured.dump(-1, ' ', false, Json::error_handler_t::replace);
}

LogEntry EntryOf(const Json& json) {
  return {.timestamp = base::TextMember(json, "timestamp"),
          .insert_id = base::TextMember(json, "insertId"),
          .severity = base::TextMember(json, "severity"),
          .task = base::TextMember(base::MemberOf(base::MemberOf(json, "resource"), "labels"),
                                   "task_name"),
          .message = MessageOf(json)};
}

// Returns a quoted value for a filter.
std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

}  // namespace

struct Client::Call {
  std::string method = "GET";
  std::string url = {};
  std::string body = {};
  bool idempotent = true;
  Attempt attempt = {};
  std::stop_token stop = {};
  absl::Duration timeout = kCallTimeout;
};

absl::StatusOr<ClientOptions> ClientOptions::FromVariables(const base::Variables& variables) {
  ClientOptions options;
  options.http = net::HttpOptions::FromEnvironment();
  MUSTER_RETURN_IF_ERROR(
      ReadEndpoint(variables, "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", &options.vertex));
  MUSTER_RETURN_IF_ERROR(
      ReadEndpoint(variables, "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING", &options.logging));
  return options;
}

std::string LogFilter(const LogQuery& query) {
  std::string filter =
      absl::StrCat("resource.type=\"ml_job\" AND resource.labels.job_id=", Quoted(query.job));
  if (!query.task.empty()) {
    absl::StrAppend(&filter, " AND resource.labels.task_name=", Quoted(query.task));
  }
  const auto add = [&filter](absl::string_view comparison, const std::optional<absl::Time>& time) {
    if (!time) return;
    absl::StrAppend(&filter, " AND timestamp", comparison,
                    Quoted(absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", *time, absl::UTCTimeZone())));
  };
  add(">=", query.from);
  add("<", query.before);
  return filter;
}

absl::string_view JobNumber(absl::string_view resource_name) {
  return resource_name.substr(resource_name.rfind('/') + 1);
}

Client::Client(ClientOptions options, std::unique_ptr<net::HttpClient> http,
               const base::Variables& variables)
    : options_(std::move(options)),
      member_(storage::GoogleMember(variables)),
      http_(std::move(http)),
      credentials_(variables, *http_) {}

absl::StatusOr<std::unique_ptr<Client>> Client::Create(const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(ClientOptions options, ClientOptions::FromVariables(variables));
  MUSTER_ASSIGN_OR_RETURN(auto http, net::HttpClient::Create(options.http));
  return std::unique_ptr<Client>(new Client(std::move(options), std::move(http), variables));
}

std::string Client::AddressOf(absl::string_view region) const {
  if (!options_.vertex.empty()) return options_.vertex;
  return absl::StrCat("https://", region, "-aiplatform.googleapis.com");
}

absl::StatusOr<Json> Client::Send(const Call& call) {
  for (bool again = false;; again = true) {
    MUSTER_ASSIGN_OR_RETURN(const storage::GoogleToken token, credentials_.Get());
    net::Request request{.method = call.method,
                         .url = call.url,
                         .headers = {{"Accept", "application/json"},
                                     {"Authorization", absl::StrCat("Bearer ", token.value)}},
                         .body = call.body,
                         .max_response_bytes = kMaxAnswer,
                         .idempotent = call.idempotent,
                         .retry_when_rejected = true,
                         .timeout = std::min(kTryTimeout, call.timeout),
                         .total_timeout = call.timeout,
                         .stop = call.stop};
    if (!call.body.empty()) request.headers.emplace_back("Content-Type", "application/json");
    const auto response = http_->Do(request);
    if (!response.ok()) return base::Annotate(response.status(), call.attempt.service);
    // The token may have been revoked before its expiry: retry once with a new one.
    if (response->status == 401 && !again) {
      credentials_.Forget(token);
      continue;
    }
    if (!response->ok()) {
      Attempt attempt = call.attempt;
      attempt.member = member_;
      return ErrorOf(attempt, *response);
    }
    Json json = base::ParseJson(response->body);
    if (json.is_object()) return json;
    return absl::DataLossError(
        absl::StrCat(call.attempt.service, ": the response is not a JSON object"));
  }
}

absl::StatusOr<Json> Client::CreateJob(const std::string& project, const std::string& region,
                                       const nlohmann::ordered_json& job) {
  return Send(
      {.method = "POST",
       .url = absl::StrCat(AddressOf(region), "/v1/projects/", net::PercentEncode(project, false),
                           "/locations/", region, "/customJobs"),
       .body = job.dump(-1, ' ', false, Json::error_handler_t::replace),
       .idempotent = false,  // a repeated request would create a second job
       .attempt = {.service = kVertexService,
                   .project = project,
                   .region = region,
                   .permission = "aiplatform.customJobs.create"}});
}

absl::StatusOr<Json> Client::GetJob(const std::string& resource_name, std::stop_token stop) {
  const std::string region = RegionOf(resource_name);
  const Call call = {
      .url = absl::StrCat(AddressOf(region), "/v1/", net::PercentEncode(resource_name, true)),
      .attempt = {.service = kVertexService,
                  .project = ProjectOf(resource_name),
                  .region = region,
                  .permission = "aiplatform.customJobs.get",
                  .job = std::string(JobNumber(resource_name))},
      .stop = std::move(stop)};
  auto job = Send(call);
  // A NotFound ends the job in the history, so a single one does not count.
  if (!absl::IsNotFound(job.status())) return job;
  absl::SleepFor(kNotFoundRetryDelay);
  return Send(call);
}

absl::StatusOr<std::vector<Json>> Client::ListJobs(const std::string& project,
                                                   const std::string& region,
                                                   const std::string& filter) {
  const std::string base =
      absl::StrCat(AddressOf(region), "/v1/projects/", net::PercentEncode(project, false),
                   "/locations/", region, "/customJobs?pageSize=", kJobsPerPage,
                   filter.empty() ? "" : "&filter=", net::PercentEncode(filter, false));
  std::vector<Json> jobs;
  std::string token;
  for (int page = 0; page < kMaxPages; ++page) {
    MUSTER_ASSIGN_OR_RETURN(const Json answer,
                            Send({.url = absl::StrCat(base, token.empty() ? "" : "&pageToken=",
                                                      net::PercentEncode(token, false)),
                                  .attempt = {.service = kVertexService,
                                              .project = project,
                                              .region = region,
                                              .permission = "aiplatform.customJobs.list"}}));
    // The member is absent if the project has no jobs.
    for (const Json& job : base::MemberOf(answer, "customJobs")) jobs.push_back(job);
    token = base::TextMember(answer, "nextPageToken");
    if (token.empty()) return jobs;
  }
  return absl::OutOfRangeError("too many pages in Vertex AI's list of jobs");
}

absl::Status Client::CancelJob(const std::string& resource_name) {
  const std::string region = RegionOf(resource_name);
  return Send({.method = "POST",
               .url = absl::StrCat(AddressOf(region), "/v1/",
                                   net::PercentEncode(resource_name, true), ":cancel"),
               .body = "{}",
               .attempt = {.service = kVertexService,
                           .project = ProjectOf(resource_name),
                           .region = region,
                           .permission = "aiplatform.customJobs.cancel",
                           .job = std::string(JobNumber(resource_name))}})
      .status();
}

absl::StatusOr<LogPage> Client::SendLog(const std::string& project, const Json& body, Call call) {
  call.method = "POST";
  call.url = absl::StrCat(options_.logging, "/v2/entries:list");
  call.body = body.dump();
  call.attempt = {
      .service = kLoggingService, .project = project, .permission = "logging.logEntries.list"};
  MUSTER_ASSIGN_OR_RETURN(const Json answer, Send(call));
  LogPage result{.next = base::TextMember(answer, "nextPageToken")};
  for (const Json& entry : base::MemberOf(answer, "entries"))
    result.entries.push_back(EntryOf(entry));
  return result;
}

absl::StatusOr<LogPage> Client::ListLog(const std::string& project, const std::string& filter,
                                        const std::string& page, std::stop_token stop) {
  Json body = {{"resourceNames", {absl::StrCat("projects/", project)}},
               {"filter", filter},
               {"orderBy", "timestamp asc"},
               {"pageSize", kEntriesPerPage}};
  if (!page.empty()) body["pageToken"] = page;
  return SendLog(project, body, {.stop = std::move(stop)});
}

absl::StatusOr<std::vector<LogEntry>> Client::TailLog(const std::string& project,
                                                      const std::string& filter, int count) {
  const Json body = {{"resourceNames", {absl::StrCat("projects/", project)}},
                     {"filter", filter},
                     {"orderBy", "timestamp desc"},
                     {"pageSize", count}};
  MUSTER_ASSIGN_OR_RETURN(LogPage page, SendLog(project, body, {.timeout = kTailTimeout}));
  std::reverse(page.entries.begin(), page.entries.end());
  return std::move(page.entries);
}

}  // namespace muster::vertex
