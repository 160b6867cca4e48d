#include "platform/vertex/run_folder.h"

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "storage/json.h"

namespace muster::vertex {
namespace {

constexpr char kJobFile[] = "job.json";
constexpr char kConfigFile[] = "config.yml";
constexpr char kTlsFile[] = "tls.json";
constexpr int64_t kMaxFile = 64 << 20;

std::string Dump(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct There {
  storage::FileSystem* files;
  storage::Url folder;
};

absl::StatusOr<There> Find(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(folder));
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(url));
  return There{files, url};
}

std::string TlsText(const JobTls& tls) {
  return Dump({{"authority", tls.authority}, {"certificate", tls.certificate}, {"key", tls.key}});
}

absl::Status WriteRest(const There& there, const Submission& submission,
                       const std::optional<JobTls>& tls) {
  MUSTER_RETURN_IF_ERROR(
      WriteWhole(*there.files, there.folder.Child(kConfigFile), submission.source));
  if (!tls) return absl::OkStatus();
  return WriteWhole(*there.files, there.folder.Child(kTlsFile), TlsText(*tls));
}

struct JobText {
  std::string text;
  Submission submission;
};

absl::StatusOr<JobText> ReadJobFile(const There& there) {
  const storage::Url url = there.folder.Child(kJobFile);
  MUSTER_ASSIGN_OR_RETURN(std::string text, ReadWhole(*there.files, url, kMaxFile));
  auto submission = SubmissionFromJson(ParseJson(text));
  if (!submission.ok()) return Annotate(submission.status(), url.ToString());
  return JobText{std::move(text), *std::move(submission)};
}

absl::Status Altered(const storage::Url& url) {
  return absl::DataLossError(
      absl::StrCat(url.ToString(), " was altered after the job was submitted: its hash differs; ",
                   "check who may write to the bucket, and submit the job again"));
}

}  // namespace

bool NeedsTls(const JobSpec& spec) { return !spec.train.is_null() && spec.Tasks().size() > 1; }

absl::StatusOr<std::string> WriteRun(storage::Storage& storage, const std::string& folder,
                                     Submission submission, const std::optional<JobTls>& tls) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  MutableTargetOf<VertexTarget>(submission).run.tls_sha256 = tls ? Sha256Hex(TlsText(*tls)) : "";
  const std::string text = Dump(SubmissionToJson(submission));
  // Creating job.json claims the id; the other files are written by the owner only.
  const absl::Status claimed =
      WriteWhole(*there.files, there.folder.Child(kJobFile), text, storage::IfExists::kFail);
  if (absl::IsAlreadyExists(claimed)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the job id '", submission.id, "' is taken: there is ", folder,
        "; choose another with --job-id, or remove the folder with `muster storage rm -r ", folder,
        "`"));
  }
  MUSTER_RETURN_IF_ERROR(claimed);
  if (absl::Status written = WriteRest(there, submission, tls); !written.ok()) {
    RemoveRun(storage, folder).IgnoreError();
    return written;
  }
  return Sha256Hex(text);
}

absl::StatusOr<Submission> ReadRun(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  MUSTER_ASSIGN_OR_RETURN(const JobText job, ReadJobFile(there));
  return job.submission;
}

absl::StatusOr<Submission> ReadOwnRun(storage::Storage& storage, const TaskRun& run) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, run.folder));
  MUSTER_ASSIGN_OR_RETURN(const JobText job, ReadJobFile(there));
  // The nonce is checked before the hash: a replaced submission is no tampering.
  if (TargetOf<VertexTarget>(job.submission).run.nonce() != run.nonce) {
    return absl::FailedPreconditionError(absl::StrCat(
        run.folder, " belongs to another submission of this job id, which took the place of ",
        "this one; this job ends here"));
  }
  if (Sha256Hex(job.text) != run.sha256) return Altered(there.folder.Child(kJobFile));
  return job.submission;
}

absl::StatusOr<std::optional<JobTls>> ReadTls(storage::Storage& storage, const std::string& folder,
                                              const Submission& submission) {
  const std::string& sha256 = TargetOf<VertexTarget>(submission).run.tls_sha256;
  if (sha256.empty() && !NeedsTls(submission.spec)) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  const storage::Url url = there.folder.Child(kTlsFile);
  const auto text = ReadWhole(*there.files, url, kMaxFile);
  if (sha256.empty() || absl::IsNotFound(text.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(url.ToString(), " is missing, and the tasks of this job talk over TLS alone; ",
                     "submit the job again"));
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  if (Sha256Hex(*text) != sha256) return Altered(url);
  const nlohmann::json json = ParseJson(*text);
  return JobTls{storage::TextMember(json, "authority"), storage::TextMember(json, "certificate"),
                storage::TextMember(json, "key")};
}

absl::Status RemoveRun(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  absl::Status first;
  // job.json is deleted last, because it holds the claim on the id.
  for (const char* name : {kTlsFile, kConfigFile, kJobFile}) {
    first.Update(there.files->Delete(there.folder.Child(name)));
  }
  return first;
}

}  // namespace muster::vertex
