#include "net/transfer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/units.h"

namespace muster::net {
namespace {

constexpr long kMinBytesPerSecond = 100;  // a slower transfer counts as stalled
constexpr long kBufferBytes = 512 << 10;
constexpr size_t kMaxErrorBodyBytes = 64 << 10;
// Bounds the memory of a response, like kMaxErrorBodyBytes.
constexpr size_t kMaxHeaders = 1000;
constexpr int kMaxPollMilliseconds = 1000;  // so that libcurl checks its timeouts

// Detects a dead peer after two minutes: the kernel sends nine keepalive probes.
constexpr long kKeepIdleSeconds = 30;
constexpr long kKeepIntervalSeconds = 10;

using SteadyTime = std::chrono::steady_clock::time_point;

// The state shared by the libcurl callbacks.
struct Transfer {
  const Request* request = nullptr;
  Response response;
  size_t sent = 0;      // of request->body
  absl::Status status;  // error of the sink, the source or the size limit
  bool cancelled = false;
  bool idle = false;         // for longer than request->idle_timeout
  SteadyTime last_received;  // from the server
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const absl::string_view line = absl::StripAsciiWhitespace({data, size * count});
  if (absl::StartsWith(line, "HTTP/")) {  // a new status line, also after a redirect
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
  transfer.last_received = std::chrono::steady_clock::now();
  const absl::string_view bytes(data, size * count);
  std::string& body = transfer.response.body;
  if (!transfer.response.ok()) {
    absl::StrAppend(
        &body, bytes.substr(0, kMaxErrorBodyBytes - std::min(kMaxErrorBodyBytes, body.size())));
    return bytes.size();
  }
  if (transfer.request->sink != nullptr) {
    transfer.status = transfer.request->sink->Write(bytes);
    return transfer.status.ok() ? bytes.size() : 0;
  }
  const int64_t limit = transfer.request->max_response_bytes;
  if (static_cast<int64_t>(body.size() + bytes.size()) > limit) {
    transfer.status = absl::OutOfRangeError(
        absl::StrCat("the response is larger than the limit of ", base::FormatBytes(limit)));
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

// libcurl rewinds the body after a redirect, and when a reused connection turns out to be closed.
// The latter is a retry of its own, which a request that is not idempotent must refuse.
int OnSeek(void* user, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (origin != SEEK_SET || offset != 0) return CURL_SEEKFUNC_CANTSEEK;
  const bool redirected = transfer.response.status != 0;
  if (!transfer.request->idempotent && !redirected) return CURL_SEEKFUNC_FAIL;
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

// Sets the options of a handle that was reset. libcurl copies strings, but not blobs and lists:
// those must stay alive until the transfer ends.
class Setup {
 public:
  Setup(const Curl& curl, CURL* handle) : curl_(curl), handle_(handle) {}
  ~Setup() {
    curl_.slist_free_all(headers_);
    curl_.slist_free_all(connect_to_);
  }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  void Limits(const HttpOptions& options, const Request& request, absl::Duration timeout) {
    // libcurl's timeouts by SIGALRM are not safe with threads.
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options.connect_timeout));
    if (!request.idle_timeout.has_value()) {
      Set(CURLOPT_LOW_SPEED_LIMIT, kMinBytesPerSecond);
      Set(CURLOPT_LOW_SPEED_TIME,
          std::max(1L, static_cast<long>(absl::ToInt64Seconds(options.stall_timeout))));
    }
    Set(CURLOPT_TIMEOUT_MS, Milliseconds(timeout));
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_TCP_KEEPIDLE, kKeepIdleSeconds);
    Set(CURLOPT_TCP_KEEPINTVL, kKeepIntervalSeconds);
    Set(CURLOPT_BUFFERSIZE, kBufferBytes);
    Set(CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
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
    if (!options.proxy.empty()) {
      Set(CURLOPT_PROXY, options.proxy.c_str());
      // An explicit proxy also overrides no_proxy of the environment.
      Set(CURLOPT_NOPROXY, "");
    }
    if (!request.signature.has_value()) return;
    const AwsSignature& sign = *request.signature;
    Set(CURLOPT_AWS_SIGV4, absl::StrCat("aws:amz:", sign.region, ":", sign.service).c_str());
    Set(CURLOPT_USERNAME, sign.access_key.c_str());
    Set(CURLOPT_PASSWORD, sign.secret_key.c_str());
  }

  // Returns false if this libcurl does not support PEM from memory.
  bool Identity(const Tls& tls) {
    bool supported = true;
    if (!tls.authorities.empty()) {
      supported = SetBlob(CURLOPT_CAINFO_BLOB, tls.authorities);
      Set(CURLOPT_CAPATH, static_cast<char*>(nullptr));  // else the system's roots are trusted too
    }
    if (!tls.certificate.empty()) {
      Set(CURLOPT_SSLCERTTYPE, "PEM");
      Set(CURLOPT_SSLKEYTYPE, "PEM");
      supported = supported && SetBlob(CURLOPT_SSLCERT_BLOB, tls.certificate) &&
                  SetBlob(CURLOPT_SSLKEY_BLOB, tls.key);
    }
    return supported;
  }

  // libcurl takes SNI and the name to verify from the URL. With tls.server_name, the URL gets that
  // name and CURLOPT_CONNECT_TO the real authority (host:port), which the Host header keeps.
  void Address(const Request& request) {
    const bool renamed = request.tls != nullptr && !request.tls->server_name.empty();
    const size_t scheme = request.url.find("://");
    if (!renamed || scheme == std::string::npos) {
      Set(CURLOPT_URL, request.url.c_str());
      return;
    }
    const size_t begin = scheme + 3;
    const size_t end = std::min(request.url.find_first_of("/?#", begin), request.url.size());
    const std::string authority = request.url.substr(begin, end - begin);
    const bool has_port =
        authority.rfind(':') != std::string::npos && !absl::EndsWith(authority, "]");
    const std::string to = absl::StrCat("::", authority, has_port ? "" : ":443");
    connect_to_ = curl_.slist_append(connect_to_, to.c_str());
    Set(CURLOPT_CONNECT_TO, connect_to_);
    const std::string url = absl::StrCat(request.url.substr(0, begin), request.tls->server_name,
                                         request.url.substr(end));
    Set(CURLOPT_URL, url.c_str());
    headers_ = curl_.slist_append(headers_, absl::StrCat("Host: ", authority).c_str());
  }

  void Message(const Request& request) {
    Address(request);
    // Names of objects may contain "..", and a signature covers the path as it is sent.
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_USERAGENT, "muster");
    for (const auto& [name, value] : request.headers) {
      // libcurl reads "Name:" as a request to drop the header; "Name;" sends it empty.
      const std::string line = absl::StrCat(name, value.empty() ? ";" : ": ", value);
      headers_ = curl_.slist_append(headers_, line.c_str());
    }
    Set(CURLOPT_HTTPHEADER, headers_);
    const bool sends = request.source != nullptr || !request.body.empty() ||
                       request.method == "PUT" || request.method == "POST";
    if (sends) {
      // Streams the body from OnRead(), for every method; CUSTOMREQUEST below names the method.
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
  bool SetBlob(CURLoption option, const std::string& bytes) {
    curl_blob blob{.data = const_cast<char*>(bytes.data()), .len = bytes.size(), .flags = 0};
    return curl_.setopt(handle_, option, &blob) == CURLE_OK;
  }

  const Curl& curl_;
  CURL* handle_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
};

// Returns the time until the next check, or 0 if the idle timeout has passed.
int MillisecondsLeft(const Transfer& transfer) {
  const absl::Duration limit = transfer.request->idle_timeout.value_or(absl::InfiniteDuration());
  if (limit == absl::InfiniteDuration()) return kMaxPollMilliseconds;
  const absl::Duration left =
      limit - absl::FromChrono(std::chrono::steady_clock::now() - transfer.last_received);
  if (left <= absl::ZeroDuration()) return 0;
  return static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 1, kMaxPollMilliseconds));
}

CURLcode ResultOf(const Curl& curl, const Handle& handle) {
  int left = 0;
  while (const CURLMsg* message = curl.multi_info_read(handle.multi, &left)) {
    if (message->msg == CURLMSG_DONE) return message->data.result;
  }
  return CURLE_RECV_ERROR;
}

// As curl_easy_perform(), but ends immediately on cancellation and after the idle timeout. A multi
// handle is used because only multi_poll() can be woken by another thread.
CURLcode Perform(const Curl& curl, const Handle& handle, Transfer& transfer) {
  const std::stop_token& stop = transfer.request->stop;
  const std::stop_callback wake(stop, [&] { curl.multi_wakeup(handle.multi); });
  transfer.last_received = std::chrono::steady_clock::now();
  if (curl.multi_add(handle.multi, handle.easy) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
  CURLcode code = CURLE_ABORTED_BY_CALLBACK;
  for (int running = 1;;) {
    transfer.cancelled = transfer.cancelled || stop.stop_requested();
    if (transfer.cancelled) break;
    if (curl.multi_perform(handle.multi, &running) != CURLM_OK) {
      code = CURLE_OUT_OF_MEMORY;
      break;
    }
    if (running == 0) {
      code = ResultOf(curl, handle);
      break;
    }
    const int wait = MillisecondsLeft(transfer);
    transfer.idle = wait == 0;
    if (transfer.idle) break;
    curl.multi_poll(handle.multi, nullptr, 0, wait, nullptr);
  }
  curl.multi_remove(handle.multi, handle.easy);
  return transfer.idle ? CURLE_OPERATION_TIMEDOUT : code;
}

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
    case CURLE_SEND_FAIL_REWIND:  // a reused connection was closed, and OnSeek() refused
      return true;
    default:
      return false;
  }
}

// Detects a certificate by another authority of the same name, as after a cluster was recreated.
// libcurl reports the bad signature as a failed handshake, although a retry cannot help.
bool IsForeignSignature(CURLcode code, absl::string_view words) {
  return code == CURLE_SSL_CONNECT_ERROR && absl::StrContains(words, "asn1 encoding routines");
}

absl::Status Explain(CURLcode code, absl::string_view words, const Transfer& transfer) {
  if (transfer.idle) return absl::UnavailableError("timed out waiting for data from the server");
  if (code == CURLE_SEND_FAIL_REWIND) {
    return absl::UnavailableError("the connection was closed before the response arrived");
  }
  if (IsLost(code)) return absl::UnavailableError(words);
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    if (transfer.request->tls != nullptr) return absl::FailedPreconditionError(words);
    return absl::FailedPreconditionError(absl::StrCat(
        words,
        "; set CURL_CA_BUNDLE or SSL_CERT_FILE to the certificate of the authority that signed ",
        "the server's certificate"));
  }
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return absl::InvalidArgumentError(words);
  }
  if (code == CURLE_SSL_CERTPROBLEM) {
    return absl::InvalidArgumentError("the client certificate or its key is not usable");
  }
  return absl::UnavailableError(words);
}

// A pretransfer time above 0 means that the connection was ready to send.
bool WasSent(const Curl& curl, CURL* handle) {
  curl_off_t ready = 0;
  return curl.getinfo(handle, CURLINFO_PRETRANSFER_TIME_T, &ready) != CURLE_OK || ready > 0;
}

}  // namespace

TryResult TryOnce(const Curl& curl, const Handle& handle, const HttpOptions& options,
                  const Request& request, absl::Duration timeout) {
  Transfer transfer{.request = &request};
  std::array<char, CURL_ERROR_SIZE> error{};
  Setup setup(curl, handle.easy);
  setup.Limits(options, request, timeout);
  setup.Security(options, request);
  if (request.tls != nullptr && !setup.Identity(*request.tls)) {
    curl.reset(handle.easy);
    return {.status = absl::UnimplementedError("this libcurl does not support certificates from "
                                               "memory; install one built with OpenSSL "
                                               "(Debian: apt-get install libcurl4)")};
  }
  setup.Message(request);
  setup.Callbacks(transfer, error.data());
  const CURLcode code = Perform(curl, handle, transfer);
  const bool sent = WasSent(curl, handle.easy);
  curl.reset(handle.easy);
  TryResult result{.response = std::move(transfer.response), .sent = sent};
  if (transfer.cancelled) {
    result.status = absl::CancelledError("interrupted");
  } else if (!transfer.status.ok()) {
    result.status = transfer.status;
  } else if (code == CURLE_OK) {
    result.kind = TryResult::Kind::kAnswered;
  } else if (IsForeignSignature(code, error.data())) {
    result.status = Explain(
        CURLE_PEER_FAILED_VERIFICATION,
        "the server's certificate was signed by another authority of the same name", transfer);
  } else if (IsLost(code) && result.response.status >= 400) {
    // The server rejected the request early and closed the connection before the body was sent.
    result.kind = TryResult::Kind::kAnswered;
  } else {
    result.kind = IsLost(code) ? TryResult::Kind::kLost : TryResult::Kind::kFailed;
    result.status = Explain(code, error[0] != '\0' ? error.data() : curl.strerror(code), transfer);
  }
  return result;
}

}  // namespace muster::net
