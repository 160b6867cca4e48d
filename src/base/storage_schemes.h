// The schemes of the storages that a job may use. Every other list of schemes is derived from this
// one; docs/storage.md describes each storage.
#pragma once

#include <array>

#include "absl/strings/string_view.h"

namespace muster {

// In the order in which messages list them. `storage/storage.cc` has a factory for each.
inline constexpr std::array<absl::string_view, 4> kStorageSchemes = {"file", "gs", "s3", "hdfs"};

}  // namespace muster
