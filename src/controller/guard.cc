#include "controller/guard.h"

#include <exception>
#include <new>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace muster::controller {
namespace {

constexpr char kThrown[] = "muster/thrown";

absl::Status Thrown(absl::string_view what) {
  absl::Status status = absl::InternalError(absl::StrCat("internal error of the operator: ", what));
  status.SetPayload(kThrown, absl::Cord());
  return status;
}

}  // namespace

absl::Status Guarded(const std::function<absl::Status()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the operator is out of memory");
  } catch (const std::exception& error) {
    return Thrown(error.what());
  }
}

bool IsThrown(const absl::Status& status) { return status.GetPayload(kThrown).has_value(); }

}  // namespace muster::controller
