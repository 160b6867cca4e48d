// libcurl, loaded when it is first needed: it brings two dozen libraries, which every command that
// does not use the network would wait for.
#pragma once

#include "absl/status/statusor.h"
#define CURL_DISABLE_TYPECHECK
#include "curl/curl.h"

namespace muster::net {

// Of libcurl, what is used here.
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_setopt) setopt;
  decltype(&::curl_easy_getinfo) getinfo;
  decltype(&::curl_easy_strerror) strerror;
  decltype(&::curl_easy_reset) reset;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_add_handle) multi_add;
  decltype(&::curl_multi_remove_handle) multi_remove;
  decltype(&::curl_multi_perform) multi_perform;
  decltype(&::curl_multi_poll) multi_poll;
  decltype(&::curl_multi_wakeup) multi_wakeup;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;

  // FailedPrecondition when libcurl is not installed, or too old. Thread-safe; what it returns is
  // never freed.
  static absl::StatusOr<const Curl*> Load();
};

}  // namespace muster::net
