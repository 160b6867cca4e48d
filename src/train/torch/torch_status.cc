#include "train/torch/torch_status.h"

#include <c10/util/Exception.h>

#include <new>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::train {
namespace {

// Returns the cause, which the TorchScript interpreter prints after a listing of the program.
std::string CauseOfScriptFailure(absl::string_view text) {
  absl::string_view cause;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const auto colon = line.find("Error: ");
    if (colon != absl::string_view::npos && !absl::StartsWith(line, " ")) {
      cause = line.substr(colon + 7);
    }
  }
  return std::string(absl::StripAsciiWhitespace(cause));
}

std::string FirstLine(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  const absl::string_view line = text.substr(0, text.find('\n'));
  return std::string(absl::StripTrailingAsciiWhitespace(line));
}

// The interpreter rethrows c10::Error as std::runtime_error, so the type does not suffice.
bool IsOfScript(absl::string_view text) {
  return absl::StrContains(text, "TorchScript interpreter") ||
         absl::StrContains(text, "Traceback of TorchScript");
}

bool IsOutOfMemory(absl::string_view message) {
  return absl::StrContains(message, "can't allocate memory") ||
         absl::StrContains(message, "not enough memory");
}

}  // namespace

std::string TorchMessage(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const absl::string_view text =
      torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  if (IsOfScript(text)) {
    if (std::string cause = CauseOfScriptFailure(text); !cause.empty()) return cause;
  }
  std::string line = FirstLine(text);
  return line.empty() ? "unknown torch error" : line;
}

absl::Status CatchTorch(absl::FunctionRef<void()> work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    const std::string message = TorchMessage(error);
    if (IsOutOfMemory(message)) {
      return absl::ResourceExhaustedError("out of memory: " + message);
    }
    const bool is_torchs =
        dynamic_cast<const c10::Error*>(&error) != nullptr || IsOfScript(error.what());
    return is_torchs ? absl::InvalidArgumentError(message) : absl::UnknownError(message);
  } catch (...) {
    return absl::UnknownError("an exception not derived from std::exception was thrown");
  }
}

}  // namespace muster::train
