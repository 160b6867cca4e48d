#include "data/classes.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"

namespace muster::data {
namespace {

constexpr size_t kNamedInErrors = 10;

std::string Named(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamedInErrors);
  std::string text = absl::StrCat(
      "'", absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), "', '"),
      "'");
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return base::Printable(text);
}

// kClassesFile has one class per line.
absl::Status CheckLines(const std::vector<std::string>& classes) {
  for (const std::string& name : classes) {
    if (name.find_first_of("\r\n") == std::string::npos) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the label ", Named({name}), " has a line break; remove it"));
  }
  return absl::OkStatus();
}

absl::Status CheckAlike(const std::vector<SplitSource>& sources) {
  for (const SplitSource& source : sources) {
    if (source.examples->class_names() == sources.front().examples->class_names()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the splits ", sources.front().split, " and ", source.split,
                     " have different classes, so their numbers would differ; create a folder per "
                     "class in both"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadClasses(const std::string& folder) {
  const std::string path = base::JoinPath(folder, kClassesFile);
  const auto text = base::ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::vector<std::string>();
  MUSTER_RETURN_IF_ERROR(text.status());
  std::vector<std::string> classes = absl::StrSplit(absl::StripSuffix(*text, "\n"), '\n');
  for (std::string& name : classes) name = std::string(absl::StripSuffix(name, "\r"));
  const std::set<std::string> different(classes.begin(), classes.end());
  if (different.size() == classes.size() && !different.contains("")) return classes;
  return absl::DataLossError(absl::StrCat(
      path, ": has an empty line or a duplicate class, so the numbers of labels are unknown; ",
      "restore it, or convert all splits again into another folder"));
}

absl::Status WriteClasses(const std::string& folder, const std::vector<std::string>& classes) {
  return base::WriteFileAtomically(base::JoinPath(folder, kClassesFile),
                                   absl::StrCat(absl::StrJoin(classes, "\n"), "\n"), 0644);
}

absl::StatusOr<Numbering> NumberClasses(const std::vector<SplitSource>& sources,
                                        const std::vector<std::string>& existing, bool add) {
  Numbering numbering{.classes = existing};
  if (existing.empty()) {
    MUSTER_RETURN_IF_ERROR(CheckAlike(sources));
    numbering.classes = sources.front().examples->class_names();
    MUSTER_RETURN_IF_ERROR(CheckLines(numbering.classes));
    return numbering;
  }
  std::set<std::string> added;
  for (const SplitSource& source : sources) {
    const std::vector<std::string> unknown = source.examples->LabelsBeyond(existing);
    if (!unknown.empty() && !add) {
      return absl::InvalidArgumentError(
          absl::StrCat("the labels ", Named(unknown), " of the split ", source.split,
                       " are not in ", kClassesFile,
                       " of the folder, which numbers the labels of all its splits; correct them, ",
                       "append them with --add-classes, or choose another folder"));
    }
    added.insert(unknown.begin(), unknown.end());
  }
  numbering.added.assign(added.begin(), added.end());
  MUSTER_RETURN_IF_ERROR(CheckLines(numbering.added));
  numbering.classes.insert(numbering.classes.end(), added.begin(), added.end());
  for (const SplitSource& source : sources) source.examples->UseClasses(numbering.classes);
  return numbering;
}

}  // namespace muster::data
