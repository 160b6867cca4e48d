// muster data inspect: shows the content of TFRecord files.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/data/commands.h"
#include "cli/data/summary.h"
#include "cli/terminal/print_json.h"
#include "data/tfrecord/record_file.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kPreviewColumns = 56;

struct InspectOptions {
  std::vector<std::string> files;
  int64_t records = 1000;
  bool json = false;
};

struct FileInfo {
  std::string path;
  int64_t bytes = 0;
  int64_t records = 0;
  data::Compression compression = data::Compression::kNone;
};

// Counts all records and summarizes the first ones.
absl::StatusOr<FileInfo> ReadFileInfo(const std::string& path, int64_t limit, StatusLine& line,
                                      ExampleSummary& summary) {
  MUSTER_ASSIGN_OR_RETURN(const data::RecordFile file, data::RecordFile::Open(path));
  FileInfo info{.path = path, .bytes = file.bytes_on_disk(), .compression = file.compression()};
  data::RecordReader reader(file, data::OnError::kFail, data::RecordReader::Check::kLengths);
  const std::string name = base::Printable(path);
  for (;; ++info.records) {
    const auto record = reader.Next();
    if (!record.ok()) {
      return absl::Status(record.status().code(),
                          absl::StrCat(record.status().message(),
                                       "; `muster data verify` shows how much can be read"));
    }
    if (!record->has_value()) return info;
    line.ShowBytes(name, reader.offset(), static_cast<int64_t>(file.bytes().size()));
    if (summary.examples() >= limit) continue;
    absl::Status status = data::CheckRecord(file, (*record)->offset).status();
    if (status.ok()) status = summary.Add((*record)->data);
    if (!status.ok()) {
      return base::Annotate(status, file.Place((*record)->number, (*record)->offset));
    }
  }
}

ordered_json ToJson(const FeatureSummary& feature, const std::string& name) {
  ordered_json json = {{"name", name},
                       {"type", std::string(data::ToString(feature.kind))},
                       {"mixed", feature.mixed},
                       {"examples", feature.examples},
                       {"values", {{"min", feature.min_values}, {"max", feature.max_values}}},
                       {"sample", feature.sample}};
  if (feature.kind == data::ListKind::kBytes) {
    json["bytes"] = {{"min", std::max<int64_t>(0, feature.min_bytes)},
                     {"max", std::max<int64_t>(0, feature.max_bytes)}};
  } else if (feature.has_number) {
    json["range"] = {{"min", feature.min}, {"max", feature.max}};
  }
  const std::string declaration = ExampleSummary::DeclarationOf(feature);
  json["declaration"] = declaration.empty() ? ordered_json() : ordered_json(declaration);
  return json;
}

void PrintJson(Terminal& out, const std::vector<FileInfo>& files, const ExampleSummary& summary) {
  ordered_json json = {{"files", ordered_json::array()},
                       {"records", 0},
                       {"inspected", summary.examples()},
                       {"features", ordered_json::array()}};
  int64_t records = 0;
  for (const FileInfo& file : files) {
    records += file.records;
    json["files"].push_back({{"path", file.path},
                             {"records", file.records},
                             {"bytes", file.bytes},
                             {"compression", std::string(data::ToString(file.compression))}});
  }
  json["records"] = records;
  for (const auto& [name, feature] : summary.features()) {
    json["features"].push_back(ToJson(feature, name));
  }
  const std::string features = summary.JobFeatures();
  json["job_features"] = features.empty() ? ordered_json() : ordered_json(features);
  PrintJson(out, json);
}

void PrintPreview(Terminal& out, const ExampleSummary& summary) {
  for (const auto& [name, feature] : summary.features()) {
    if (feature.kind != data::ListKind::kBytes) continue;
    const auto lines = DrawImage(feature.first, std::min(kPreviewColumns, out.width() - 1));
    if (!lines) continue;
    out.PrintLine(absl::StrCat("\n", base::Printable(name), " of the first record"));
    for (const std::string& line : *lines) out.PrintLine(line);
    return;
  }
}

void PrintText(Terminal& out, const std::vector<FileInfo>& files, const ExampleSummary& summary) {
  Table table({"FILE", "RECORDS", "SIZE", "COMPRESSION"}, 0);
  int64_t records = 0;
  for (const FileInfo& file : files) {
    records += file.records;
    table.Add({base::Printable(file.path), absl::StrCat(file.records),
               base::FormatBytes(file.bytes), std::string(data::ToString(file.compression))});
  }
  out.Print(table.Render(out));
  if (files.size() > 1) out.PrintLine(absl::StrCat(base::Plural(records, "record"), " in all"));
  if (summary.examples() == 0) return;
  out.PrintLine(absl::StrCat("\nthe first ", summary.examples(), " of them:"));
  Table features({"FEATURE", "TYPE", "RECORDS", "VALUES", "SAMPLE"}, 4);
  for (const auto& [name, feature] : summary.features()) {
    features.Add({base::Printable(name), ExampleSummary::TypeOf(feature),
                  absl::StrCat(feature.examples), ExampleSummary::ValuesOf(feature),
                  ExampleSummary::SampleOf(feature)});
  }
  out.Print(features.Render(out));
  PrintPreview(out, summary);
  const std::string job = summary.JobFeatures();
  if (!job.empty()) out.PrintLine(absl::StrCat("\nin a job: features: ", base::Printable(job)));
}

absl::StatusOr<int> Inspect(Context& context, const InspectOptions& options) {
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                          RecordFilesIn(context, options.files));
  ExampleSummary summary;
  std::vector<FileInfo> files;
  {
    StatusLine line(context.err());
    for (const std::string& path : paths) {
      MUSTER_ASSIGN_OR_RETURN(FileInfo info, ReadFileInfo(path, options.records, line, summary));
      files.push_back(std::move(info));
    }
  }
  if (options.json) {
    PrintJson(context.out(), files, summary);
  } else {
    PrintText(context.out(), files, summary);
  }
  return kSuccess;
}

}  // namespace

void AddDataInspectCommand(Command& data, Context& context) {
  Command& command = data.AddCommand("inspect", "Show the content of TFRecord files");
  auto options = std::make_shared<InspectOptions>();
  command.Argument("FILE", &options->files, "TFRecord files, globs, or folders of them",
                   Presence::kRequired);
  command.Option("--records", &options->records,
                 "The number of records to inspect; all are counted (1000)");
  command.Flag("--json", &options->json, "Print JSON");
  command.OnCall([&context, options] { return Inspect(context, *options); });
}

}  // namespace muster::cli
