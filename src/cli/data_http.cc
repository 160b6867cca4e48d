#include "cli/data_http.h"

#include <dlfcn.h>

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/units.h"
#define CURL_DISABLE_TYPECHECK
#include "curl/curl.h"

namespace muster::cli {
namespace {

constexpr long kConnectSeconds = 5;
constexpr long kSilentSeconds = 15;
constexpr long kSlowest = 100;  // bytes a second
constexpr long kWholeSeconds = 600;
constexpr long kMaxRedirects = 5;

struct Transfer {
  std::string content;
  int64_t max_bytes = 0;
  const HttpProgress* progress = nullptr;
  bool too_large = false;
  bool cancelled = false;
};

size_t OnData(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  if (static_cast<int64_t>(transfer.content.size() + bytes) > transfer.max_bytes) {
    transfer.too_large = true;
    return 0;
  }
  transfer.content.append(data, bytes);
  return bytes;
}

int OnProgress(void* user, curl_off_t total, curl_off_t now, curl_off_t /*upload*/,
               curl_off_t /*uploaded*/) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.cancelled = !(*transfer.progress)(now, total);
  return transfer.cancelled ? 1 : 0;
}

}  // namespace

// Of libcurl, what is used here.
struct HttpClient::Library {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_setopt) setopt;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) getinfo;
  decltype(&::curl_easy_strerror) strerror;
  decltype(&::curl_easy_cleanup) cleanup;
  CURL* handle = nullptr;

  bool Load(void* library) {
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    return find(global_init, "curl_global_init") && find(init, "curl_easy_init") &&
           find(setopt, "curl_easy_setopt") && find(perform, "curl_easy_perform") &&
           find(getinfo, "curl_easy_getinfo") && find(strerror, "curl_easy_strerror") &&
           find(cleanup, "curl_easy_cleanup");
  }

  void SetUp(const std::string& url, Transfer& transfer, char* error) const {
    const char* protocols = absl::StartsWith(url, "https://") ? "https" : "http,https";
    setopt(handle, CURLOPT_URL, url.c_str());
    setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    setopt(handle, CURLOPT_MAXREDIRS, kMaxRedirects);
    setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L);
    setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L);
    setopt(handle, CURLOPT_FAILONERROR, 1L);
    setopt(handle, CURLOPT_NOSIGNAL, 1L);
    setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowest);
    setopt(handle, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
    setopt(handle, CURLOPT_TIMEOUT, kWholeSeconds);
    setopt(handle, CURLOPT_USERAGENT, "muster");
    setopt(handle, CURLOPT_ERRORBUFFER, error);
    setopt(handle, CURLOPT_WRITEFUNCTION, &OnData);
    setopt(handle, CURLOPT_WRITEDATA, &transfer);
    setopt(handle, CURLOPT_NOPROGRESS, 0L);
    setopt(handle, CURLOPT_XFERINFOFUNCTION, &OnProgress);
    setopt(handle, CURLOPT_XFERINFODATA, &transfer);
  }
};

HttpClient::HttpClient(std::unique_ptr<Library> library) : library_(std::move(library)) {}

HttpClient::~HttpClient() { library_->cleanup(library_->handle); }

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create() {
  void* loaded = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (loaded == nullptr) loaded = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  auto library = std::make_unique<Library>();
  if (loaded == nullptr || !library->Load(loaded)) {
    return absl::FailedPreconditionError(
        "libcurl cannot be loaded; install it (Debian: apt-get install libcurl4)");
  }
  if (library->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
      (library->handle = library->init()) == nullptr) {
    return absl::FailedPreconditionError("libcurl cannot be set up");
  }
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(library)));
}

absl::StatusOr<std::string> HttpClient::Get(const std::string& url, int64_t max_bytes,
                                            const HttpProgress& progress) {
  Transfer transfer{.max_bytes = max_bytes, .progress = &progress};
  std::array<char, CURL_ERROR_SIZE> error{};
  library_->SetUp(url, transfer, error.data());
  const CURLcode code = library_->perform(library_->handle);
  library_->setopt(library_->handle, CURLOPT_ERRORBUFFER, nullptr);
  if (code == CURLE_OK) return std::move(transfer.content);
  if (transfer.cancelled) return absl::CancelledError("interrupted");
  if (transfer.too_large) {
    return absl::OutOfRangeError(
        absl::StrCat("is larger than the ", FormatBytes(max_bytes), " that it may have"));
  }
  if (code == CURLE_HTTP_RETURNED_ERROR) {
    long status = 0;
    library_->getinfo(library_->handle, CURLINFO_RESPONSE_CODE, &status);
    const std::string message = absl::StrCat("the server answers HTTP ", status);
    return status == 404 ? absl::NotFoundError(message) : absl::UnavailableError(message);
  }
  return absl::UnavailableError(error[0] != '\0' ? error.data() : library_->strerror(code));
}

}  // namespace muster::cli
