// The schemes of the storages that a job may use. Every other list of schemes is derived from this
// one; docs/storage.md describes each storage.
#pragma once

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// In the order in which messages list them. `storage/storage.cc` has a factory for each.
inline constexpr std::array<absl::string_view, 4> kStorageSchemes = {"file", "gs", "s3", "hdfs"};

inline constexpr char kDfsRule[] =
    "expected dfs:///path for the default file system, or hdfs://host:port/path";

// Returns the scheme of the storage of the URL `scheme`://`rest`: the scheme itself, or "hdfs" for
// dfs:///path. Returns "" if there is no such storage; dfs://path is one that only other programs
// know.
inline absl::string_view StorageSchemeOf(absl::string_view scheme, absl::string_view rest) {
  if (scheme == "dfs" && !rest.empty() && rest.front() == '/') return "hdfs";
  for (const absl::string_view known : kStorageSchemes) {
    if (scheme == known) return known;
  }
  return "";
}

// Returns the URL schemes of storages that every machine can reach: "gs://, s3://, hdfs://".
inline std::string RemoteSchemes() {
  std::string list;
  for (const absl::string_view scheme : kStorageSchemes) {
    if (scheme != "file") absl::StrAppend(&list, list.empty() ? "" : ", ", scheme, "://");
  }
  return list;
}

}  // namespace muster::base
