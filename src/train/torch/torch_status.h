// Conversion of torch's exceptions to statuses.
#pragma once

#include <exception>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace muster::train {

// Returns torch's message in one line: without a backtrace, and for a TorchScript failure the cause
// instead of the program's listing.
std::string TorchMessage(const std::exception& error);

// Runs `work` and converts exceptions: torch's to InvalidArgument, or ResourceExhausted if out of
// memory; any other (of a user's model, loss or hook) to Unknown. The message is TorchMessage().
absl::Status CatchTorch(absl::FunctionRef<void()> work);

}  // namespace muster::train
