#include "net/curl.h"

#include <dlfcn.h>

#include <type_traits>

#include "absl/strings/str_cat.h"

namespace muster::net {
namespace {

constexpr unsigned kMinVersion = 0x075500;  // 7.85.0

bool FindAll(void* library, Curl& curl) {
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  return find(curl.global_init, "curl_global_init") &&
         find(curl.version_info, "curl_version_info") && find(curl.init, "curl_easy_init") &&
         find(curl.setopt, "curl_easy_setopt") && find(curl.getinfo, "curl_easy_getinfo") &&
         find(curl.strerror, "curl_easy_strerror") && find(curl.reset, "curl_easy_reset") &&
         find(curl.cleanup, "curl_easy_cleanup") && find(curl.multi_init, "curl_multi_init") &&
         find(curl.multi_cleanup, "curl_multi_cleanup") &&
         find(curl.multi_add, "curl_multi_add_handle") &&
         find(curl.multi_remove, "curl_multi_remove_handle") &&
         find(curl.multi_perform, "curl_multi_perform") &&
         find(curl.multi_poll, "curl_multi_poll") && find(curl.multi_wakeup, "curl_multi_wakeup") &&
         find(curl.multi_info_read, "curl_multi_info_read") &&
         find(curl.slist_append, "curl_slist_append") &&
         find(curl.slist_free_all, "curl_slist_free_all");
}

absl::StatusOr<const Curl*> LoadOnce() {
  // RTLD_LOCAL keeps the symbols of libcurl's own dependencies (another OpenSSL, for example)
  // apart.
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  auto* curl = new Curl{};
  if (library == nullptr || !FindAll(library, *curl)) {
    return absl::FailedPreconditionError(
        "cannot load libcurl; install it (Debian: apt-get install libcurl4)");
  }
  // Older versions silently ignore options that security depends on: request signing, safe
  // redirects.
  const curl_version_info_data* version = curl->version_info(CURLVERSION_NOW);
  if (version->version_num < kMinVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("libcurl ", version->version, " is too old; install 7.85 or later"));
  }
  if (curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::FailedPreconditionError("cannot initialize libcurl");
  }
  return curl;
}

}  // namespace

absl::StatusOr<const Curl*> Curl::Load() {
  static const auto& loaded = *new absl::StatusOr<const Curl*>(LoadOnce());
  return loaded;
}

}  // namespace muster::net
