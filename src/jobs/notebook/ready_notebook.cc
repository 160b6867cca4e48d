#include "jobs/notebook/ready_notebook.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "jobs/ready_notebook_file.h"
#include "nlohmann/json.hpp"

namespace muster::jobs {
namespace {

using nlohmann::json;
using Lines = std::vector<std::string>;

// As in editors that run a Python file cell by cell.
constexpr absl::string_view kCell = "# %%";
constexpr absl::string_view kMarkdown = "# %% [markdown]";

// Returns a cell of the file format, in which each line but the last has its line end.
json ToCell(Lines lines, bool markdown) {
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (markdown) lines[i] = std::string(absl::StripPrefix(absl::StripPrefix(lines[i], "#"), " "));
    if (i + 1 < lines.size()) lines[i] += "\n";
  }
  json cell = {{"cell_type", markdown ? "markdown" : "code"},
               {"metadata", json::object()},
               {"source", std::move(lines)}};
  if (markdown) return cell;
  cell["execution_count"] = nullptr;
  cell["outputs"] = json::array();
  return cell;
}

}  // namespace

std::string ReadyNotebook(absl::string_view job) {
  const std::string text =
      absl::StrReplaceAll(kReadyNotebook[0].text, {{"@JOB@", std::string(job)}});
  json cells = json::array();
  Lines lines;
  bool markdown = false, started = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, kCell)) {
      if (started) lines.emplace_back(line);
      continue;
    }
    if (started) cells.push_back(ToCell(std::move(lines), markdown));
    lines.clear();
    markdown = line == kMarkdown;
    started = true;
  }
  cells.push_back(ToCell(std::move(lines), markdown));
  const json notebook = {
      {"nbformat", 4},
      {"nbformat_minor", 4},
      {"metadata",
       {{"kernelspec", {{"name", "python3"}, {"display_name", "Python 3"}, {"language", "python"}}},
        {"language_info", {{"name", "python"}}}}},
      {"cells", std::move(cells)}};
  return absl::StrCat(notebook.dump(1, ' ', false, json::error_handler_t::replace), "\n");
}

absl::Status WriteReadyNotebook(absl::string_view job, const std::string& path,
                                const std::string& record) {
  const auto current = base::ReadFile(path);
  const auto written = base::ReadFile(record);
  // An unreadable file is not replaced either.
  if (!absl::IsNotFound(current.status()) &&
      (!current.ok() || !written.ok() || base::Sha256Hex(*current) != *written)) {
    return absl::OkStatus();
  }
  const std::string text = ReadyNotebook(job);
  MUSTER_RETURN_IF_ERROR(base::ReplaceFile(path, text));
  return base::ReplaceFile(record, base::Sha256Hex(text));
}

}  // namespace muster::jobs
