#include "platform/vertex/run_folder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "base/text/json.h"

namespace muster::vertex {
namespace {

constexpr char kJobFile[] = "job.json";
constexpr char kConfigFile[] = "config.yml";
constexpr char kTlsFile[] = "tls.json";
constexpr char kNewestFile[] = "newest";
constexpr int64_t kMaxFile = 64 << 20;
constexpr int64_t kMaxUrlBytes = 4096;
constexpr size_t kMaxPrefix = 40;
// The prefix of a tool for Cloud ML Engine whose runs can be continued.
constexpr char kLuminothPrefix[] = "lumi_";

std::string Dump(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct RunLocation {
  storage::FileSystem* files;
  storage::Url folder;
};

absl::StatusOr<RunLocation> Find(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(folder));
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(url));
  return RunLocation{files, url};
}

std::string TlsText(const job::JobTls& tls) {
  return Dump({{"authority", tls.authority}, {"certificate", tls.certificate}, {"key", tls.key}});
}

absl::Status WriteRest(const RunLocation& there, const job::Submission& submission,
                       const std::optional<job::JobTls>& tls) {
  MUSTER_RETURN_IF_ERROR(
      WriteWhole(*there.files, there.folder.Child(kConfigFile), submission.source));
  if (!tls) return absl::OkStatus();
  return WriteWhole(*there.files, there.folder.Child(kTlsFile), TlsText(*tls));
}

struct JobText {
  std::string text;
  job::Submission submission;
};

absl::StatusOr<JobText> ReadJobFile(const RunLocation& there) {
  const storage::Url url = there.folder.Child(kJobFile);
  MUSTER_ASSIGN_OR_RETURN(std::string text, ReadWhole(*there.files, url, kMaxFile));
  auto submission = job::SubmissionFromJson(base::ParseJson(text));
  if (!submission.ok()) return base::Annotate(submission.status(), url.ToString());
  return JobText{std::move(text), *std::move(submission)};
}

absl::Status Altered(const storage::Url& url) {
  return absl::DataLossError(
      absl::StrCat(url.ToString(), " was altered after the job was submitted: its hash differs; ",
                   "check who may write to the bucket, and submit the job again"));
}

}  // namespace

absl::Status CheckFolderPrefix(absl::string_view prefix) {
  const bool good =
      prefix.size() <= kMaxPrefix && std::all_of(prefix.begin(), prefix.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("folder prefix '", prefix, "': expected at most ", kMaxPrefix,
                   " letters, digits, - and _ (--folder-prefix, MUSTER_VERTEX_FOLDER_PREFIX)"));
}

bool NeedsTls(const job::JobSpec& spec) { return !spec.train.is_null() && spec.Tasks().size() > 1; }

absl::StatusOr<std::string> WriteRun(storage::Storage& storage, const std::string& folder,
                                     job::Submission submission,
                                     const std::optional<job::JobTls>& tls) {
  MUSTER_ASSIGN_OR_RETURN(const RunLocation there, Find(storage, folder));
  job::MutableTargetOf<job::VertexTarget>(submission).run.tls_sha256 =
      tls ? base::Sha256Hex(TlsText(*tls)) : "";
  const std::string text = Dump(job::SubmissionToJson(submission));
  // Creating job.json claims the id; the other files are written by the owner only.
  const absl::Status claimed =
      WriteWhole(*there.files, there.folder.Child(kJobFile), text, storage::IfExists::kFail);
  if (absl::IsAlreadyExists(claimed)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the job id '", submission.id, "' is taken by ", folder,
        "; choose another with --job-id, or remove the folder with `muster storage rm -r ", folder,
        "`"));
  }
  MUSTER_RETURN_IF_ERROR(claimed);
  if (absl::Status written = WriteRest(there, submission, tls); !written.ok()) {
    RemoveRun(storage, folder).IgnoreError();
    return written;
  }
  return base::Sha256Hex(text);
}

absl::StatusOr<job::Submission> ReadRun(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const RunLocation there, Find(storage, folder));
  MUSTER_ASSIGN_OR_RETURN(const JobText job, ReadJobFile(there));
  return job.submission;
}

absl::StatusOr<job::Submission> ReadOwnRun(storage::FileSystem& files, const TaskRun& run) {
  MUSTER_ASSIGN_OR_RETURN(const storage::Url folder, storage::ParseUrl(run.folder));
  const RunLocation there{&files, folder};
  MUSTER_ASSIGN_OR_RETURN(const JobText job, ReadJobFile(there));
  // The nonce is checked before the hash: a replaced submission is not tampering.
  if (job::TargetOf<job::VertexTarget>(job.submission).run.nonce() != run.nonce) {
    return absl::FailedPreconditionError(
        absl::StrCat(run.folder, " belongs to another submission of this job id, which replaced ",
                     "this one; this task exits"));
  }
  if (base::Sha256Hex(job.text) != run.sha256) return Altered(there.folder.Child(kJobFile));
  return job.submission;
}

absl::StatusOr<std::optional<job::JobTls>> ReadTls(storage::FileSystem& files,
                                                   const std::string& folder,
                                                   const job::Submission& submission) {
  const std::string& sha256 = job::TargetOf<job::VertexTarget>(submission).run.tls_sha256;
  if (sha256.empty() && !NeedsTls(submission.spec)) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const storage::Url run, storage::ParseUrl(folder));
  const storage::Url url = run.Child(kTlsFile);
  const auto text = ReadWhole(files, url, kMaxFile);
  if (sha256.empty() || absl::IsNotFound(text.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(url.ToString(), " is missing, but the tasks of this job require TLS; ",
                     "submit the job again"));
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  if (base::Sha256Hex(*text) != sha256) return Altered(url);
  const nlohmann::json json = base::ParseJson(*text);
  return job::JobTls{base::TextMember(json, "authority"), base::TextMember(json, "certificate"),
                     base::TextMember(json, "key")};
}

absl::Status RemoveRun(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const RunLocation there, Find(storage, folder));
  absl::Status first;
  // job.json is deleted last, because it holds the claim on the id.
  for (const char* name : {kTlsFile, kConfigFile, kJobFile}) {
    first.Update(there.files->Delete(there.folder.Child(name)));
  }
  return first;
}

absl::StatusOr<EarlierRun> FindRun(storage::Storage& storage, const job::VertexTarget& target,
                                   const std::string& id) {
  std::vector<std::string> folders;
  for (const std::string& prefix :
       {target.folder_prefix, std::string(), std::string(kLuminothPrefix)}) {
    job::VertexTarget other = target;
    other.folder_prefix = prefix;
    std::string folder = other.FolderOf(id);
    // The target's prefix may be the default one.
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(std::move(folder));
    }
  }
  for (const std::string& folder : folders) {
    auto run = ReadRun(storage, folder);
    if (run.ok()) return EarlierRun{folder, *std::move(run)};
    if (!absl::IsNotFound(run.status())) return run.status();
  }
  for (const std::string& folder : folders) {
    MUSTER_ASSIGN_OR_RETURN(const RunLocation there, Find(storage, folder));
    const auto config = there.files->Stat(there.folder.Child(kConfigFile));
    if (config.ok()) return EarlierRun{folder, std::nullopt};
    if (!absl::IsNotFound(config.status())) return config.status();
  }
  return absl::NotFoundError(absl::StrCat("gs://", target.bucket, " has no folder of a run ", id,
                                          ", such as ", folders[0]));
}

absl::Status WriteNewest(storage::Storage& storage, const std::string& first,
                         const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const RunLocation there, Find(storage, first));
  return WriteWhole(*there.files, there.folder.Child(kNewestFile), folder);
}

absl::StatusOr<job::Submission> ReadNewest(storage::Storage& storage, const std::string& first) {
  MUSTER_ASSIGN_OR_RETURN(job::Submission run, ReadRun(storage, first));
  MUSTER_ASSIGN_OR_RETURN(const RunLocation there, Find(storage, first));
  const auto newest = ReadWhole(*there.files, there.folder.Child(kNewestFile), kMaxUrlBytes);
  if (absl::IsNotFound(newest.status())) return run;
  MUSTER_RETURN_IF_ERROR(newest.status());
  auto latest = ReadRun(storage, *newest);
  // The folder of the newest run may have been deleted: its checkpoints are in `first`.
  if (absl::IsNotFound(latest.status())) return run;
  MUSTER_RETURN_IF_ERROR(latest.status());
  // Anybody who may write to the bucket may have written the URL.
  return latest->spec.model_dir == run.spec.model_dir ? *std::move(latest) : std::move(run);
}

}  // namespace muster::vertex
