#include "checkpoint/compare.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace muster::checkpoint {
namespace {

constexpr size_t kMaxLines = 10;

std::string Describe(const base::TensorSpec& spec) {
  return absl::StrCat(base::ToString(spec.dtype), " ", base::ToString(spec.shape));
}

}  // namespace

std::vector<std::string> Differences(const std::vector<base::TensorSpec>& model,
                                     const std::vector<base::TensorSpec>& stored) {
  std::map<std::string, const base::TensorSpec*> unexpected;
  for (const base::TensorSpec& spec : stored) unexpected[spec.name] = &spec;
  std::vector<std::string> lines;
  for (const base::TensorSpec& spec : model) {
    const auto found = unexpected.find(spec.name);
    if (found == unexpected.end()) {
      lines.push_back(absl::StrCat(spec.name, ": ", Describe(spec), " is not in the checkpoint"));
      continue;
    }
    if (!(*found->second == spec)) {
      lines.push_back(absl::StrCat(spec.name, ": ", Describe(spec), " in the model, ",
                                   Describe(*found->second), " in the checkpoint"));
    }
    unexpected.erase(found);
  }
  for (const base::TensorSpec& spec : stored) {
    if (!unexpected.contains(spec.name)) continue;
    lines.push_back(absl::StrCat(spec.name, ": ", Describe(spec), " is not in the model"));
  }
  if (lines.size() > kMaxLines) {
    const size_t more = lines.size() - kMaxLines;
    lines.resize(kMaxLines);
    lines.push_back(absl::StrCat("and ", more, " more"));
  }
  return lines;
}

}  // namespace muster::checkpoint
