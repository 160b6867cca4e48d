#include "net/http_client.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "net/curl.h"
#include "net/transfer.h"

namespace muster::net {
namespace {

// Each idle handle keeps a connection, so this bounds the open descriptors.
constexpr size_t kMaxIdleHandles = 64;
constexpr absl::Duration kCancelPollInterval = absl::Milliseconds(100);

// Returns the "https://host:port" of a URL.
std::string OriginOf(absl::string_view url) {
  const size_t scheme = url.find("://");
  const size_t from = scheme == absl::string_view::npos ? 0 : scheme + 3;
  return std::string(url.substr(0, url.find_first_of("/?#", from)));
}

// Returns true if the server certainly has not executed the request.
bool WasRejected(const TryResult& result) {
  if (result.kind == TryResult::Kind::kLost) return !result.sent;
  const Response& response = result.response;
  // A server with admission control sheds load with these before it executes anything. A 503
  // without Retry-After may come from a proxy whose backend has executed the request.
  return response.status == 429 ||
         (response.status == 503 && !response.Header("Retry-After").empty());
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

}  // namespace

// A pool of idle libcurl handles by origin; each keeps its connection open. Thread-safe.
class HttpClient::Handles {
 public:
  explicit Handles(const Curl& curl) : curl_(curl) {}
  ~Handles() {
    for (const auto& [origin, handles] : idle_) {
      for (const Handle& handle : handles) Free(handle);
    }
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  const Curl& curl() const { return curl_; }

  // Returns the most recently used handle, whose connection is the most likely to be still open, or
  // a new one. Returns nullopt when out of memory.
  std::optional<Handle> Take(const std::string& origin) {
    {
      absl::MutexLock lock(&mutex_);
      const auto found = idle_.find(origin);
      if (found != idle_.end() && !found->second.empty()) {
        const Handle handle = found->second.back();
        found->second.pop_back();
        --count_;
        return handle;
      }
    }
    const Handle handle{.easy = curl_.init(), .multi = curl_.multi_init()};
    if (handle.easy != nullptr && handle.multi != nullptr) return handle;
    Free(handle);
    return std::nullopt;
  }

  void Give(const std::string& origin, const Handle& handle) {
    {
      absl::MutexLock lock(&mutex_);
      if (count_ < kMaxIdleHandles) {
        idle_[origin].push_back(handle);
        ++count_;
        return;
      }
    }
    Free(handle);
  }

 private:
  void Free(const Handle& handle) {
    if (handle.easy != nullptr) curl_.cleanup(handle.easy);
    if (handle.multi != nullptr) curl_.multi_cleanup(handle.multi);
  }

  const Curl& curl_;
  absl::Mutex mutex_;
  std::map<std::string, std::vector<Handle>> idle_ ABSL_GUARDED_BY(mutex_);
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

HttpOptions HttpOptions::FromEnvironment() {
  HttpOptions options;
  options.ca_file = Variable("CURL_CA_BUNDLE");
  if (options.ca_file.empty()) options.ca_file = Variable("SSL_CERT_FILE");
  options.ca_folder = Variable("SSL_CERT_DIR");
  return options;
}

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(HttpOptions options) {
  MUSTER_ASSIGN_OR_RETURN(const Curl* curl, Curl::Load());
  return std::unique_ptr<HttpClient>(
      new HttpClient(std::move(options), std::make_unique<Handles>(*curl)));
}

HttpClient::HttpClient(HttpOptions options, std::unique_ptr<Handles> handles)
    : options_(std::move(options)), handles_(std::move(handles)), random_(std::random_device{}()) {}

HttpClient::~HttpClient() = default;

std::optional<absl::Duration> HttpClient::DelayAfter(int tries, const Response& response) {
  const RetryPolicy& policy = options_.retry;
  if (tries >= policy.tries) return std::nullopt;
  // Full jitter: clients that failed together spread over the whole interval.
  const absl::Duration limit =
      std::min(policy.max_delay, policy.first_delay * std::exp2(std::min(tries - 1, 30)));
  absl::Duration delay;
  {
    absl::MutexLock lock(&mutex_);
    delay = limit * std::uniform_real_distribution<double>(0, 1)(random_);
  }
  const auto asked = ParseRetryAfter(response.Header("Retry-After"), options_.clock->Now());
  return asked.has_value() ? std::max(delay, *asked) : delay;
}

bool HttpClient::Wait(absl::Duration delay, const Request& request) const {
  if (options_.sleep) {
    options_.sleep(delay);
    return !request.stop.stop_requested() && (!request.progress || request.progress(0, 0));
  }
  // Sleeps in slices only if the request can be cancelled.
  const bool cancellable = request.progress || request.stop.stop_possible();
  while (delay > absl::ZeroDuration()) {
    if (request.stop.stop_requested()) return false;
    if (request.progress && !request.progress(0, 0)) return false;
    const absl::Duration slice = cancellable ? std::min(delay, kCancelPollInterval) : delay;
    absl::SleepFor(slice);
    delay -= slice;
  }
  return true;
}

bool HttpClient::WaitBeforeRetry(int tries, const Response& response) {
  const auto delay = DelayAfter(tries, response);
  return delay.has_value() && Wait(*delay, Request{});
}

absl::StatusOr<Response> HttpClient::Do(const Request& request) {
  const std::string origin = OriginOf(request.url);
  const absl::Time begin = options_.clock->Now();
  // The policy limits only when an attempt may start; the request's total_timeout also cuts it
  // short.
  const absl::Time end = begin + std::min(options_.retry.total_timeout, request.total_timeout);
  for (int tries = 1;; ++tries) {
    const std::optional<Handle> handle = handles_->Take(origin);
    if (!handle.has_value()) return absl::ResourceExhaustedError("libcurl is out of memory");
    const absl::Duration timeout =
        std::min(request.timeout, begin + request.total_timeout - options_.clock->Now());
    TryResult result = TryOnce(handles_->curl(), *handle, options_, request, timeout);
    // Also after a failure: libcurl itself drops a connection that is broken.
    handles_->Give(origin, *handle);
    result.response.tries = tries;
    const bool answered = result.kind == TryResult::Kind::kAnswered;
    if (answered && !IsRetryableStatus(result.response.status)) return std::move(result.response);
    if (result.kind == TryResult::Kind::kFailed) return result.status;
    std::optional<absl::Duration> delay;
    if (request.idempotent || (request.retry_when_rejected && WasRejected(result))) {
      delay = DelayAfter(tries, result.response);
    }
    if (!delay.has_value() || options_.clock->Now() + *delay > end) {
      if (answered) return std::move(result.response);
      return tries == 1 ? result.status
                        : absl::UnavailableError(
                              absl::StrCat(result.status.message(), " (tried ", tries, " times)"));
    }
    if (!Wait(*delay, request)) return absl::CancelledError("interrupted");
    if (request.source != nullptr) MUSTER_RETURN_IF_ERROR(request.source->Rewind());
    if (request.sink != nullptr) MUSTER_RETURN_IF_ERROR(request.sink->Rewind());
  }
}

}  // namespace muster::net
