#include "controller/catch_exceptions.h"

#include <exception>
#include <new>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace muster::controller {
namespace {

constexpr char kPayload[] = "muster/exception";

absl::Status FromException(absl::string_view what) {
  absl::Status status = absl::InternalError(absl::StrCat("internal error of the operator: ", what));
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

}  // namespace

absl::Status CatchExceptions(const std::function<absl::Status()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the operator is out of memory");
  } catch (const std::exception& error) {
    return FromException(error.what());
  }
}

bool IsFromException(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

}  // namespace muster::controller
