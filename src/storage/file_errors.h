// Errors that all storages report in the same words.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/url.h"

namespace muster::storage {

inline absl::Status Absent(const Url& url) {
  return absl::NotFoundError(absl::StrCat(url.ToString(), ": no such file"));
}

inline absl::Status Exists(const Url& url) {
  return absl::AlreadyExistsError(
      absl::StrCat(url.ToString(), ": already exists and must not be replaced"));
}

inline absl::Status NotAFileName(const Url& url) {
  return absl::FailedPreconditionError(
      absl::StrCat(url.ToString(), ": is a folder; expected a file"));
}

inline absl::Status NotEmpty(const Url& url) {
  return absl::FailedPreconditionError(absl::StrCat(url.ToString(), ": the folder is not empty"));
}

inline absl::Status AlreadyClosed(const Url& url) {
  return absl::FailedPreconditionError(absl::StrCat(url.ToString(), ": is already closed"));
}

// The name now belongs to another file than the one that was opened.
inline absl::Status Replaced(const Url& url) {
  return absl::AbortedError(
      absl::StrCat(url.ToString(), ": was replaced while it was read; start again"));
}

inline absl::Status NegativeOffset() {
  return absl::InvalidArgumentError("the offset to read at is negative");
}

}  // namespace muster::storage
