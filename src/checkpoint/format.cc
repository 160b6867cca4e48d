#include "checkpoint/format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"

namespace muster::checkpoint {
namespace {

bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return absl::ascii_isdigit(c); });
}

}  // namespace

std::string StepFolder(int64_t step) { return absl::StrFormat("step-%09d", step); }

std::string CheckpointPath(const std::string& model_dir, int64_t step) {
  return base::JoinPath(base::JoinPath(model_dir, kFolder), StepFolder(step));
}

std::optional<int64_t> ParseStepFolder(absl::string_view name) {
  int64_t step = 0;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, "step-") || !AllDigits(digits) ||
      !absl::SimpleAtoi(digits, &step) || StepFolder(step) != name) {
    return std::nullopt;
  }
  return step;
}

std::string ShardFile(absl::string_view kind, int number, int count) {
  return absl::StrFormat("%s-%05d-of-%05d.safetensors", kind, number, count);
}

std::optional<ShardName> ParseShardFile(absl::string_view name) {
  for (const absl::string_view kind : {kModelKind, kOptimizerKind}) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, kind) || !absl::ConsumePrefix(&rest, "-")) continue;
    ShardName shard{.kind = std::string(kind)};
    const absl::string_view number = rest.substr(0, 5);
    const absl::string_view count = rest.size() > 9 ? rest.substr(9, 5) : "";
    if (!AllDigits(number) || !AllDigits(count) || !absl::SimpleAtoi(number, &shard.number) ||
        !absl::SimpleAtoi(count, &shard.count) ||
        ShardFile(kind, shard.number, shard.count) != name) {
      return std::nullopt;
    }
    return shard;
  }
  return std::nullopt;
}

bool IsRunOutput(absl::string_view name) {
  return name == "eval" || name == "export" || absl::StartsWith(name, "events.out.tfevents.");
}

bool IsPlainFileName(absl::string_view name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' && !absl::StrContains(name, '/') &&
         !absl::StrContains(name, absl::string_view("\0", 1));
}

}  // namespace muster::checkpoint
