#include "job/format/train_config.h"

#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "codec/diagnostics.h"
#include "codec/yaml.h"
#include "job/format/parse.h"
#include "job/format/train_section.h"

namespace muster::job {

absl::StatusOr<nlohmann::json> ReadTrainConfig(const std::string& text_or_file) {
  const bool is_text = absl::StartsWith(absl::StripLeadingAsciiWhitespace(text_or_file), "{");
  std::string text = text_or_file;
  if (!is_text) {
    MUSTER_ASSIGN_OR_RETURN(text, base::ReadFile(text_or_file));
  }
  codec::Diagnostics diagnostics(is_text ? "MUSTER_TRAIN_CONFIG" : text_or_file);
  const std::vector<codec::Node> documents =
      codec::ParseYaml(text, {.bytes = kMaxJobFileBytes}, diagnostics);
  if (documents.size() != 1 && diagnostics.empty()) {
    diagnostics.Add({}, "expected one map: the train section of a job");
  }
  MUSTER_RETURN_IF_ERROR(diagnostics.ToStatus());
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  nlohmann::json train = ReadTrain(documents.front(), here, diagnostics);
  MUSTER_RETURN_IF_ERROR(diagnostics.ToStatus());
  return train;
}

}  // namespace muster::job
