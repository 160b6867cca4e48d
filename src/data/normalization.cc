#include "data/normalization.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "data/convert/csv.h"

namespace muster::data {
namespace {

constexpr char kHeader[] = "column,mean,deviation\n";

std::string CsvCell(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

absl::StatusOr<FeatureScale> ScaleOf(const CsvRow& row) {
  FeatureScale scale;
  if (row.cells.size() == 3 && absl::SimpleAtod(row.cells[1], &scale.mean) &&
      absl::SimpleAtod(row.cells[2], &scale.deviation) && std::isfinite(scale.mean) &&
      std::isfinite(scale.deviation) && scale.deviation > 0) {
    scale.column = row.cells[0];
    return scale;
  }
  return absl::DataLossError(
      absl::StrCat("line ", row.line, " must be a column, its mean and its deviation"));
}

}  // namespace

absl::StatusOr<std::vector<FeatureScale>> ReadNormalization(const std::string& folder) {
  const std::string path = base::JoinPath(folder, kNormalizationFile);
  const auto text = base::ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::vector<FeatureScale>();
  MUSTER_RETURN_IF_ERROR(text.status());
  const auto rows = ParseCsv(*text);
  if (!rows.ok()) return base::Annotate(rows.status(), path);
  std::vector<FeatureScale> scales;
  for (size_t i = 1; i < rows->size(); ++i) {
    auto scale = ScaleOf((*rows)[i]);
    if (!scale.ok()) return base::Annotate(scale.status(), path);
    scales.push_back(*std::move(scale));
  }
  if (!scales.empty()) return scales;
  return absl::DataLossError(absl::StrCat(path, ": has no columns; remove the file"));
}

absl::Status WriteNormalization(const std::string& folder,
                                const std::vector<FeatureScale>& scales) {
  std::string text = kHeader;
  for (const FeatureScale& scale : scales) {
    absl::StrAppend(&text, CsvCell(scale.column),
                    absl::StrFormat(",%.17g,%.17g\n", scale.mean, scale.deviation));
  }
  return base::ReplaceFile(base::JoinPath(folder, kNormalizationFile), text, 0644);
}

absl::StatusOr<std::vector<FeatureScale>> Normalize(const std::vector<SplitSource>& sources,
                                                    const std::vector<FeatureScale>& existing) {
  std::vector<FeatureScale> scales = existing;
  if (scales.empty()) {
    MUSTER_ASSIGN_OR_RETURN(scales, sources.front().examples->ComputeScales());
  }
  for (const SplitSource& source : sources) {
    MUSTER_RETURN_IF_ERROR(source.examples->UseScales(scales));
  }
  return scales;
}

}  // namespace muster::data
