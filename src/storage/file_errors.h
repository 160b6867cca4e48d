// What every storage says in the same words.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/url.h"

namespace muster::storage {

inline absl::Status Absent(const Url& url) {
  return absl::NotFoundError(absl::StrCat(url.ToString(), ": there is no such file"));
}

inline absl::Status Exists(const Url& url) {
  return absl::AlreadyExistsError(
      absl::StrCat(url.ToString(), ": is there already, and must not be replaced"));
}

inline absl::Status NotAFileName(const Url& url) {
  return absl::FailedPreconditionError(
      absl::StrCat(url.ToString(), ": is the name of a folder; name a file in it"));
}

inline absl::Status NotEmpty(const Url& url) {
  return absl::FailedPreconditionError(
      absl::StrCat(url.ToString(), ": is a folder with files in it"));
}

inline absl::Status AlreadyClosed(const Url& url) {
  return absl::FailedPreconditionError(absl::StrCat(url.ToString(), ": was closed before"));
}

// There is another file of that name now.
inline absl::Status Replaced(const Url& url) {
  return absl::AbortedError(
      absl::StrCat(url.ToString(), ": was replaced while it was read; begin again"));
}

inline absl::Status NegativeOffset() {
  return absl::InvalidArgumentError("a file was to be read before its begin");
}

}  // namespace muster::storage
