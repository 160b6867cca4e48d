// libcurl, loaded on first use: it depends on two dozen libraries, whose loading would slow down
// every command that does not use the network.
#pragma once

#include "absl/status/statusor.h"
#define CURL_DISABLE_TYPECHECK
#include "curl/curl.h"

namespace muster::net {

// The libcurl functions in use.
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

  // Loads libcurl once. Returns FailedPrecondition if it is missing or too old. Thread-safe; the
  // result is never freed.
  static absl::StatusOr<const Curl*> Load();
};

}  // namespace muster::net
