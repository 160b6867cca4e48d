#include "net/curl.h"

#include <dlfcn.h>

#include <type_traits>

namespace muster::net {
namespace {

bool FindAll(void* library, Curl& curl) {
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  return find(curl.global_init, "curl_global_init") && find(curl.init, "curl_easy_init") &&
         find(curl.setopt, "curl_easy_setopt") && find(curl.perform, "curl_easy_perform") &&
         find(curl.getinfo, "curl_easy_getinfo") && find(curl.strerror, "curl_easy_strerror") &&
         find(curl.reset, "curl_easy_reset") && find(curl.cleanup, "curl_easy_cleanup") &&
         find(curl.slist_append, "curl_slist_append") &&
         find(curl.slist_free_all, "curl_slist_free_all");
}

absl::StatusOr<const Curl*> LoadOnce() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  auto* curl = new Curl{};
  if (library == nullptr || !FindAll(library, *curl)) {
    return absl::FailedPreconditionError(
        "libcurl cannot be loaded; install it (Debian: apt-get install libcurl4)");
  }
  if (curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::FailedPreconditionError("libcurl cannot be set up");
  }
  return curl;
}

}  // namespace

absl::StatusOr<const Curl*> Curl::Load() {
  static const auto& loaded = *new absl::StatusOr<const Curl*>(LoadOnce());
  return loaded;
}

}  // namespace muster::net
