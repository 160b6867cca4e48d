// Torch reports by exceptions; at our borders they become statuses.
#pragma once

#include <exception>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace muster::train {

// What torch wants to say, in one line: no backtrace, and of a TorchScript failure the cause
// instead of the program's listing.
std::string TorchMessage(const std::exception& error);

// Runs `work`. What torch throws becomes InvalidArgument, or ResourceExhausted when memory ran out;
// any other exception (of a user's model, loss or hook) Unknown. The text is TorchMessage.
absl::Status CatchTorch(absl::FunctionRef<void()> work);

}  // namespace muster::train
