#include "net/transfer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/units.h"

namespace muster::net {
namespace {

constexpr long kSlowest = 100;  // bytes a second; fewer are silence
constexpr long kBuffer = 512 << 10;
constexpr size_t kErrorBody = 64 << 10;
constexpr size_t kMaxHeaders = 1000;

// What the callbacks share.
struct Transfer {
  const Request* request = nullptr;
  Response response;
  size_t sent = 0;      // of request->body
  absl::Status status;  // of the sink, the source or the limit
  bool cancelled = false;
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const absl::string_view line = absl::StripAsciiWhitespace({data, size * count});
  if (absl::StartsWith(line, "HTTP/")) {  // the answer, or the next one after a redirection
    transfer.response = Response{};
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &transfer.response.status)) return 0;
    return size * count;
  }
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos && transfer.response.headers.size() < kMaxHeaders) {
    transfer.response.headers.emplace_back(line.substr(0, colon),
                                           absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return size * count;
}

size_t OnData(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const absl::string_view bytes(data, size * count);
  std::string& body = transfer.response.body;
  if (!transfer.response.ok()) {
    absl::StrAppend(&body, bytes.substr(0, kErrorBody - std::min(kErrorBody, body.size())));
    return bytes.size();
  }
  if (transfer.request->sink != nullptr) {
    transfer.status = transfer.request->sink->Write(bytes);
    return transfer.status.ok() ? bytes.size() : 0;
  }
  const int64_t limit = transfer.request->max_response_bytes;
  if (static_cast<int64_t>(body.size() + bytes.size()) > limit) {
    transfer.status = absl::OutOfRangeError(
        absl::StrCat("is larger than the ", FormatBytes(limit), " that it may have"));
    return 0;
  }
  absl::StrAppend(&body, bytes);
  return bytes.size();
}

size_t OnRead(char* buffer, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const absl::Span<char> room(buffer, size * count);
  if (transfer.request->source == nullptr) {
    const size_t n = transfer.request->body.copy(room.data(), room.size(), transfer.sent);
    transfer.sent += n;
    return n;
  }
  const auto n = transfer.request->source->Read(room);
  if (n.ok()) return *n;
  transfer.status = n.status();
  return CURL_READFUNC_ABORT;
}

// libcurl asks for it when a connection that it had kept turns out to be closed, or at a
// redirection.
int OnSeek(void* user, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (origin != SEEK_SET || offset != 0) return CURL_SEEKFUNC_CANTSEEK;
  transfer.sent = 0;
  if (transfer.request->source == nullptr) return CURL_SEEKFUNC_OK;
  transfer.status = transfer.request->source->Rewind();
  return transfer.status.ok() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

int OnProgress(void* user, curl_off_t total, curl_off_t now, curl_off_t /*upload*/,
               curl_off_t /*uploaded*/) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.cancelled = !transfer.request->progress(now, total);
  return transfer.cancelled ? 1 : 0;
}

long Milliseconds(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return 0;
  return std::max(1L, static_cast<long>(absl::ToInt64Milliseconds(duration)));
}

// Sets up a handle that was reset.
class Setup {
 public:
  Setup(const Curl& curl, CURL* handle) : curl_(curl), handle_(handle) {}
  ~Setup() { curl_.slist_free_all(list_); }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  void Limits(const HttpOptions& options, const Request& request) {
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options.connect_timeout));
    Set(CURLOPT_LOW_SPEED_LIMIT, kSlowest);
    Set(CURLOPT_LOW_SPEED_TIME,
        std::max(1L, static_cast<long>(absl::ToInt64Seconds(options.stall_timeout))));
    Set(CURLOPT_TIMEOUT_MS, Milliseconds(request.timeout));
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_BUFFERSIZE, kBuffer);
    Set(CURLOPT_UPLOAD_BUFFERSIZE, kBuffer);
  }

  void Security(const HttpOptions& options, const Request& request) {
    const bool https = absl::StartsWithIgnoreCase(request.url, "https://");
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https");
    Set(CURLOPT_FOLLOWLOCATION, request.max_redirects > 0 ? 1L : 0L);
    Set(CURLOPT_MAXREDIRS, static_cast<long>(request.max_redirects));
    Set(CURLOPT_SSL_VERIFYPEER, 1L);
    Set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!options.ca_file.empty()) Set(CURLOPT_CAINFO, options.ca_file.c_str());
    if (!options.ca_folder.empty()) Set(CURLOPT_CAPATH, options.ca_folder.c_str());
    if (!request.signature.has_value()) return;
    const AwsSignature& sign = *request.signature;
    Set(CURLOPT_AWS_SIGV4, absl::StrCat("aws:amz:", sign.region, ":", sign.service).c_str());
    Set(CURLOPT_USERNAME, sign.access_key.c_str());
    Set(CURLOPT_PASSWORD, sign.secret_key.c_str());
  }

  void Message(const Request& request) {
    Set(CURLOPT_URL, request.url.c_str());
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_USERAGENT, "muster");
    for (const auto& [name, value] : request.headers) {
      // An empty value would mean to libcurl that the header is not to be sent.
      const std::string line = absl::StrCat(name, value.empty() ? ";" : ": ", value);
      list_ = curl_.slist_append(list_, line.c_str());
    }
    Set(CURLOPT_HTTPHEADER, list_);
    const bool sends = request.source != nullptr || !request.body.empty() ||
                       request.method == "PUT" || request.method == "POST";
    if (sends) {
      Set(CURLOPT_UPLOAD, 1L);
      Set(CURLOPT_INFILESIZE_LARGE,
          static_cast<curl_off_t>(request.source != nullptr
                                      ? request.source->size()
                                      : static_cast<int64_t>(request.body.size())));
    }
    if (request.method == "HEAD") {
      Set(CURLOPT_NOBODY, 1L);
    } else if (request.method != (sends ? "PUT" : "GET")) {
      Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
  }

  void Callbacks(Transfer& transfer, char* error) {
    Set(CURLOPT_ERRORBUFFER, error);
    Set(CURLOPT_HEADERFUNCTION, &OnHeader);
    Set(CURLOPT_HEADERDATA, &transfer);
    Set(CURLOPT_WRITEFUNCTION, &OnData);
    Set(CURLOPT_WRITEDATA, &transfer);
    Set(CURLOPT_READFUNCTION, &OnRead);
    Set(CURLOPT_READDATA, &transfer);
    Set(CURLOPT_SEEKFUNCTION, &OnSeek);
    Set(CURLOPT_SEEKDATA, &transfer);
    if (!transfer.request->progress) return;
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    Set(CURLOPT_XFERINFODATA, &transfer);
  }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    curl_.setopt(handle_, option, value);
  }

  const Curl& curl_;
  CURL* handle_;
  curl_slist* list_ = nullptr;
};

bool IsLost(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
      return true;
    default:
      return false;
  }
}

absl::Status Explain(CURLcode code, absl::string_view words) {
  if (IsLost(code)) return absl::UnavailableError(words);
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    return absl::FailedPreconditionError(absl::StrCat(
        words, "; name the file of the authority that signed the server's certificate ",
        "in CURL_CA_BUNDLE or SSL_CERT_FILE"));
  }
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return absl::InvalidArgumentError(words);
  }
  return absl::UnavailableError(words);
}

}  // namespace

TryResult TryOnce(const Curl& curl, CURL* handle, const HttpOptions& options,
                  const Request& request) {
  Transfer transfer{.request = &request};
  std::array<char, CURL_ERROR_SIZE> error{};
  Setup setup(curl, handle);
  setup.Limits(options, request);
  setup.Security(options, request);
  setup.Message(request);
  setup.Callbacks(transfer, error.data());
  const CURLcode code = curl.perform(handle);
  curl.reset(handle);
  TryResult result{.response = std::move(transfer.response)};
  if (transfer.cancelled) {
    result.status = absl::CancelledError("interrupted");
  } else if (!transfer.status.ok()) {
    result.status = transfer.status;
  } else if (code == CURLE_OK) {
    result.kind = TryResult::Kind::kAnswered;
  } else if (IsLost(code) && result.response.status >= 400) {
    // The server has said what it thinks of the request, and did not wait for the rest of it.
    result.kind = TryResult::Kind::kAnswered;
  } else {
    result.kind = IsLost(code) ? TryResult::Kind::kLost : TryResult::Kind::kFailed;
    result.status = Explain(code, error[0] != '\0' ? error.data() : curl.strerror(code));
  }
  return result;
}

}  // namespace muster::net
