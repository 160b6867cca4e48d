// Early return for absl::Status and absl::StatusOr, and context added on the way up.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// Returns `status` with `context` before its message ("worker:3: …"), the code and the payloads
// kept.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    annotated.SetPayload(type, payload);
  });
  return annotated;
}

}  // namespace muster::base

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

#define MUSTER_RETURN_IF_ERROR(expr)                                                    \
  do {                                                                                  \
    if (absl::Status muster_status = (expr); !muster_status.ok()) return muster_status; \
  } while (false)

#define MUSTER_ASSIGN_OR_RETURN(lhs, expr) \
  MUSTER_ASSIGN_OR_RETURN_INNER(MUSTER_CONCAT(muster_or_, __LINE__), lhs, expr)
#define MUSTER_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return tmp.status();                 \
  lhs = *std::move(tmp)
