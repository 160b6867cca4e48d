// muster storage: operations on files by URL.
#include "storage/storage.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/terminal/print_json.h"
#include "nlohmann/json.hpp"
#include "process/held_signals.h"
#include "storage/copy.h"
#include "storage/read_ahead.h"
#include "storage/setup.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using storage::CopyAll;
using storage::CopyOptions;
using storage::CopyPair;
using storage::CopyResult;
using storage::Depth;
using storage::FileInfo;
using storage::FileSystem;
using storage::Reader;
using storage::Storage;
using storage::Url;

struct StorageOptions {
  std::vector<std::string> urls;
  storage::NewBucketOptions bucket;
  bool json = false;
  bool recursive = false;
  bool yes = false;
  int parallel = 4;
};

bool IsLocalFolder(const Url& url) {
  std::error_code ignored;
  return url.scheme == "file" && fs::is_directory(url.name, ignored);
}

absl::Status Nothing(const Url& url) {
  return absl::NotFoundError(absl::StrCat(
      url.ToString(), storage::IsGlob(url) ? ": nothing matches" : ": does not exist"));
}

// Returns the file of that name, else the files that match the pattern, else none.
absl::StatusOr<std::vector<FileInfo>> FilesOf(Storage& storage, const Url& url) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
  auto info = files->Stat(url);
  if (info.ok()) return std::vector<FileInfo>{*std::move(info)};
  if (!absl::IsNotFound(info.status())) return info.status();
  if (!storage::IsGlob(url)) return std::vector<FileInfo>{};
  return storage::Glob(*files, url);
}

// Returns the files that an argument names. Rejects a folder, with advice.
absl::StatusOr<std::vector<FileInfo>> NeedFiles(Storage& storage, const Url& url,
                                                absl::string_view advice) {
  MUSTER_ASSIGN_OR_RETURN(auto found, FilesOf(storage, url));
  if (!found.empty()) return found;
  MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
  MUSTER_ASSIGN_OR_RETURN(const auto below, files->List(url.AsFolder(), Depth::kHere));
  if (below.empty() && !IsLocalFolder(url)) return Nothing(url);
  return absl::FailedPreconditionError(absl::StrCat(url.ToString(), ": is a folder", advice));
}

absl::StatusOr<std::vector<Url>> ParseAll(const std::vector<std::string>& texts) {
  std::vector<Url> urls;
  for (const std::string& text : texts) {
    MUSTER_ASSIGN_OR_RETURN(Url url, storage::ParseUrl(text));
    urls.push_back(std::move(url));
  }
  return urls;
}

ordered_json ToJson(const FileInfo& info) {
  const bool dated = info.modified != absl::InfinitePast();
  return {{"url", info.url.ToString()},
          {"folder", info.is_folder()},
          {"bytes", info.is_folder() ? ordered_json() : ordered_json(info.bytes)},
          {"modified", dated ? ordered_json(absl::FormatTime(absl::RFC3339_full, info.modified,
                                                             absl::UTCTimeZone()))
                             : ordered_json()},
          {"md5", info.md5.empty() ? ordered_json() : ordered_json(info.md5)}};
}

void PrintJson(Terminal& out, const std::vector<FileInfo>& infos) {
  ordered_json json = ordered_json::array();
  for (const FileInfo& info : infos) json.push_back(ToJson(info));
  PrintJson(out, json);
}

absl::StatusOr<std::vector<FileInfo>> ListOne(Storage& storage, const Url& url, bool recursive) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
  const bool is_folder = url.NamesFolder() || IsLocalFolder(url);
  if (!is_folder) {
    MUSTER_ASSIGN_OR_RETURN(auto found, FilesOf(storage, url));
    if (!found.empty()) return found;
  }
  MUSTER_ASSIGN_OR_RETURN(auto found,
                          files->List(url.AsFolder(), recursive ? Depth::kAll : Depth::kHere));
  const bool is_all = url.name.empty() || url.name == "/";
  if (found.empty() && !IsLocalFolder(url) && !is_all) return Nothing(url);
  return found;
}

absl::StatusOr<int> Ls(Context& context, const StorageOptions& options) {
  Storage storage;
  std::vector<FileInfo> all;
  MUSTER_ASSIGN_OR_RETURN(const auto urls, ParseAll(options.urls));
  for (const Url& url : urls) {
    MUSTER_ASSIGN_OR_RETURN(auto found, ListOne(storage, url, options.recursive));
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  Terminal& out = context.out();
  if (options.json) {
    PrintJson(out, all);
    return kSuccess;
  }
  for (const FileInfo& info : all) {
    const bool dated = info.modified != absl::InfinitePast() && !info.is_folder();
    out.PrintLine(absl::StrFormat(
        "%9s  %19s  %s", info.is_folder() ? "" : base::FormatBytes(info.bytes),
        dated ? base::FormatLocalTime(info.modified) : "", base::Printable(info.url.ToString())));
  }
  return kSuccess;
}

absl::StatusOr<int> StatFiles(Context& context, const StorageOptions& options) {
  Storage storage;
  std::vector<FileInfo> all;
  MUSTER_ASSIGN_OR_RETURN(const auto urls, ParseAll(options.urls));
  for (const Url& url : urls) {
    MUSTER_ASSIGN_OR_RETURN(const auto found,
                            NeedFiles(storage, url, "; `muster storage ls` shows what is in it"));
    MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
    for (const FileInfo& info : found) {
      MUSTER_ASSIGN_OR_RETURN(FileInfo whole, files->Stat(info.url));
      all.push_back(std::move(whole));
    }
  }
  Terminal& out = context.out();
  if (options.json) {
    PrintJson(out, all);
    return kSuccess;
  }
  for (const FileInfo& info : all) {
    out.PrintLine(base::Printable(info.url.ToString()));
    out.PrintLine(
        absl::StrCat("  size      ", info.bytes, " bytes (", base::FormatBytes(info.bytes), ")"));
    if (info.modified != absl::InfinitePast()) {
      out.PrintLine(absl::StrCat("  modified  ", base::FormatLocalTime(info.modified)));
    }
    if (!info.md5.empty()) out.PrintLine(absl::StrCat("  md5       ", info.md5));
  }
  return kSuccess;
}

absl::Status CatOne(Context& context, FileSystem& files, const Url& url, int ranges) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Reader> reader, files.OpenForReading(url));
  storage::ReadAhead ahead(*reader, url, {.parallel = ranges});
  while (context.out().ok()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::string_view bytes, ahead.Next());
    if (bytes.empty()) break;
    context.out().PrintData(bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Cat(Context& context, const StorageOptions& options) {
  Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const auto urls, ParseAll(options.urls));
  for (const Url& url : urls) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, NeedFiles(storage, url, "; name a file in it"));
    MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
    for (const FileInfo& info : found) {
      MUSTER_RETURN_IF_ERROR(CatOne(context, *files, info.url, options.parallel));
    }
  }
  return kSuccess;
}

std::string CountOf(size_t files) { return base::Plural(static_cast<int64_t>(files), "file"); }

absl::StatusOr<bool> Agrees(Context& context, const StorageOptions& options,
                            const std::string& what) {
  return DemandConsent(context.err(), options.yes, absl::StrCat("Remove ", what, "?"),
                       "nothing was removed");
}

// Removes a local folder with its content, including links and empty folders. Does not follow
// links.
absl::StatusOr<int> RmLocalFolder(Context& context, const StorageOptions& options, const Url& url) {
  if (!IsLocalFolder(url)) return Nothing(url);
  std::error_code error;
  if (fs::canonical(url.name, error) == "/") {
    return absl::InvalidArgumentError(
        absl::StrCat(url.ToString(), ": is the root of the file system"));
  }
  const std::string name = base::Printable(url.ToString());
  MUSTER_ASSIGN_OR_RETURN(const bool agreed,
                          Agrees(context, options, absl::StrCat(name, " and everything in it")));
  if (!agreed) return kFailure;
  fs::remove_all(url.name, error);
  if (error) return absl::ErrnoToStatus(error.value(), url.ToString());
  context.out().PrintLine(absl::StrCat("removed ", name));
  return kSuccess;
}

// Removes the empty folders that HDFS keeps after their files were deleted.
absl::Status RemoveFolders(FileSystem& files, const Url& folder,
                           const std::vector<FileInfo>& removed) {
  if (folder.scheme != "hdfs") return absl::OkStatus();
  const size_t top = folder.AsFolder().name.size();
  std::set<std::string, std::greater<>> names = {folder.AsFolder().name};
  for (const FileInfo& info : removed) {
    for (size_t end = info.url.name.rfind('/') + 1; end > top;
         end = info.url.name.rfind('/', end - 2) + 1) {
      names.insert(info.url.name.substr(0, end));
    }
  }
  for (const std::string& name : names) {  // subfolders come before their parent
    const absl::Status status = files.Delete(folder.WithName(name));
    if (!absl::IsFailedPrecondition(status)) MUSTER_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RmOne(Context& context, Storage& storage, const StorageOptions& options,
                          const Url& url) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
  MUSTER_ASSIGN_OR_RETURN(auto found, options.recursive
                                          ? FilesOf(storage, url)
                                          : NeedFiles(storage, url, "; -r removes what is in it"));
  const bool folder = found.empty();
  if (folder && url.scheme == "file") return RmLocalFolder(context, options, url);
  const std::string name = base::Printable(url.ToString());
  if (folder) {
    MUSTER_ASSIGN_OR_RETURN(found, files->List(url.AsFolder(), Depth::kAll));
    if (found.empty()) return Nothing(url);
    MUSTER_ASSIGN_OR_RETURN(
        const bool agreed,
        Agrees(context, options, absl::StrCat(CountOf(found.size()), " in ", name)));
    if (!agreed) return kFailure;
  }
  for (const FileInfo& info : found) MUSTER_RETURN_IF_ERROR(files->Delete(info.url));
  if (folder) MUSTER_RETURN_IF_ERROR(RemoveFolders(*files, url, found));
  context.out().PrintLine(
      absl::StrCat("removed ", CountOf(found.size()), folder ? " in " : ": ", name));
  return kSuccess;
}

absl::StatusOr<int> Rm(Context& context, const StorageOptions& options) {
  Storage storage;
  int code = kSuccess;
  MUSTER_ASSIGN_OR_RETURN(const auto urls, ParseAll(options.urls));
  for (const Url& url : urls) {
    MUSTER_ASSIGN_OR_RETURN(const int one, RmOne(context, storage, options, url));
    code = std::max(code, one);
  }
  return code;
}

absl::StatusOr<int> Mb(Context& context, const StorageOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const auto urls, ParseAll(options.urls));
  for (const Url& url : urls) {
    MUSTER_ASSIGN_OR_RETURN(const bool is_new, storage::MakeBucketOrFolder(
                                                   url, options.bucket, base::ProcessVariables()));
    const bool in_bucket = url.scheme != "file" && url.scheme != "hdfs";
    const std::string name = base::Printable((in_bucket ? url.WithName("") : url).ToString());
    context.out().PrintLine(absl::StrCat(is_new ? "made " : "exists already: ", name));
  }
  return kSuccess;
}

absl::Status CheckTargets(const std::vector<CopyPair>& pairs) {
  std::set<std::string> targets;
  for (const CopyPair& pair : pairs) {
    if (pair.from.url == pair.to) {
      return absl::InvalidArgumentError(
          absl::StrCat(pair.to.ToString(), ": cannot be copied to itself"));
    }
    if (!targets.insert(pair.to.ToString()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two files would be copied to ", pair.to.ToString()));
    }
  }
  return absl::OkStatus();
}

// Plans the copies. With -r the content of a folder goes below TO; otherwise files go to TO, or
// below it if it is a folder.
absl::StatusOr<std::vector<CopyPair>> PlanCopy(Storage& storage, const StorageOptions& options) {
  if (options.urls.size() < 2) {
    return absl::InvalidArgumentError("missing arguments; usage: muster storage cp FROM… TO");
  }
  MUSTER_ASSIGN_OR_RETURN(std::vector<Url> urls, ParseAll(options.urls));
  const Url to = urls.back();
  urls.pop_back();
  std::vector<CopyPair> pairs;
  const bool into = urls.size() > 1 || to.NamesFolder() || IsLocalFolder(to);
  for (const Url& url : urls) {
    MUSTER_ASSIGN_OR_RETURN(FileSystem * files, storage.For(url));
    const auto found = options.recursive ? FilesOf(storage, url)
                                         : NeedFiles(storage, url, "; -r copies what is in it");
    MUSTER_RETURN_IF_ERROR(found.status());
    for (const FileInfo& info : *found) {
      const bool matched = info.url != url;  // by a pattern
      pairs.push_back({info, into || matched ? to.Child(info.url.Basename()) : to});
    }
    if (!found->empty()) continue;
    const Url folder = url.AsFolder();
    MUSTER_ASSIGN_OR_RETURN(const auto below, files->List(folder, Depth::kAll));
    if (below.empty() && !IsLocalFolder(url)) return Nothing(url);
    for (const FileInfo& info : below) {
      const absl::string_view name = absl::StripPrefix(info.url.name, folder.name);
      if (to.scheme == "file" && !storage::StaysBelow(name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            info.url.ToString(), ": its name points outside ", to.ToString(), "; not copied"));
      }
      pairs.push_back({info, to.Child(name)});
    }
  }
  MUSTER_RETURN_IF_ERROR(CheckTargets(pairs));
  return pairs;
}

absl::StatusOr<int> Cp(Context& context, const StorageOptions& options) {
  Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const auto pairs, PlanCopy(storage, options));
  int64_t total = 0;
  for (const CopyPair& pair : pairs) total += pair.from.bytes;
  const process::HeldSignals signals;
  Terminal& err = context.err();
  CopyOptions copy{.parallel = std::max(options.parallel, 1)};
  copy.progress = [&](int64_t bytes, int files) {
    err.SetStatus(
        base::Ellipsize(absl::StrCat(files, " of ", CountOf(pairs.size()), "  ",
                                     base::FormatBytes(bytes), " of ", base::FormatBytes(total)),
                        err.width() - 1));
    return !signals.any();
  };
  const CopyResult result = CopyAll(storage, pairs, copy);
  err.SetStatus("");
  for (const absl::Status& failure : result.failures) err.Error(std::string(failure.message()));
  std::string line = absl::StrCat("copied ", CountOf(static_cast<size_t>(result.copied)), ", ",
                                  base::FormatBytes(result.copied_bytes));
  if (result.skipped > 0) absl::StrAppend(&line, "; ", result.skipped, " already there");
  context.out().PrintLine(line);
  if (result.stopped) return kInterrupted;
  return result.failures.empty() ? kSuccess : kFailure;
}

}  // namespace

void AddStorageCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("storage", "List, read, copy and remove files by URL, make buckets");
  command.Footer(
      "\nA URL is a path, gs://bucket/name, s3://bucket/name, hdfs://host:port/path or "
      "file:///path; "
      "*, ? and [a-z] match within a part of a name.");
  command.OnCall([]() -> absl::StatusOr<int> {
    return absl::InvalidArgumentError(
        "missing command; `muster storage ls URL` lists; also: cat, cp, mb, rm, stat");
  });
  const auto add = [&](const char* name, const char* description, const char* argument,
                       const char* what, auto body) -> std::pair<Command&, StorageOptions&> {
    Command& sub = command.AddCommand(name, description);
    auto options = std::make_shared<StorageOptions>();
    sub.Argument(argument, &options->urls, what, Presence::kRequired);
    sub.OnCall([&context, options, body] { return body(context, *options); });
    return {sub, *options};
  };
  auto [ls, ls_options] = add("ls", "List files", "URL", "Files, folders or patterns", Ls);
  ls.Flag("-r,--recursive", &ls_options.recursive, "List everything below");
  ls.Flag("--json", &ls_options.json, "Print JSON");
  auto [cat, cat_options] = add("cat", "Print files", "URL", "Files or patterns", Cat);
  cat.Option("-j,--parallel", &cat_options.parallel,
             "The number of ranges of a file to fetch in parallel");
  auto [cp, cp_options] = add("cp", "Copy files; skip those already there", "URL",
                              "Files, patterns or, with -r, folders; last, the target", Cp);
  cp.Flag("-r,--recursive", &cp_options.recursive, "Copy the content of folders into TO");
  cp.Option("-j,--parallel", &cp_options.parallel, "The number of files to copy in parallel");
  auto [mb, mb_options] =
      add("mb", "Make a bucket or folder", "URL", "Buckets (gs, s3) or folders (hdfs, paths)", Mb);
  mb.Option("--location", &mb_options.bucket.location,
            "Where a bucket's data is stored, such as europe-west4 (default: us-central1 for gs, "
            "AWS_REGION for s3)");
  mb.Option("--project", &mb_options.bucket.project,
            "The project that pays for a bucket of gs (default: that of the credentials)");
  auto [rm, rm_options] =
      add("rm", "Remove files", "URL", "Files, patterns or, with -r, folders", Rm);
  rm.Flag("-r,--recursive", &rm_options.recursive, "Remove folders with their content");
  rm.Flag("-y,--yes", &rm_options.yes,
          "Do not ask for confirmation; required for -r without a terminal");
  auto [stat, stat_options] =
      add("stat", "Show size, time and checksum", "URL", "Files or patterns", StatFiles);
  stat.Flag("--json", &stat_options.json, "Print JSON");
}

}  // namespace muster::cli
