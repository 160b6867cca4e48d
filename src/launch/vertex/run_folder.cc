#include "launch/vertex/run_folder.h"

#include "absl/strings/str_cat.h"
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

absl::Status WriteRest(const There& there, const Submission& submission,
                       const std::optional<JobTls>& tls) {
  MUSTER_RETURN_IF_ERROR(
      WriteWhole(*there.files, there.folder.Child(kConfigFile), submission.source));
  if (!tls) return absl::OkStatus();
  const nlohmann::json json = {
      {"authority", tls->authority}, {"certificate", tls->certificate}, {"key", tls->key}};
  return WriteWhole(*there.files, there.folder.Child(kTlsFile), Dump(json));
}

}  // namespace

absl::Status WriteRun(storage::Storage& storage, const std::string& folder,
                      const Submission& submission, const std::optional<JobTls>& tls) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  const absl::Status claimed =
      WriteWhole(*there.files, there.folder.Child(kJobFile), Dump(SubmissionToJson(submission)),
                 storage::IfExists::kFail);
  if (absl::IsAlreadyExists(claimed)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the job id '", submission.id, "' is taken: there is ", folder,
        "; choose another with --job-id, or remove the folder with `muster storage rm -r ", folder,
        "`"));
  }
  MUSTER_RETURN_IF_ERROR(claimed);
  const absl::Status written = WriteRest(there, submission, tls);
  if (!written.ok()) RemoveRun(storage, folder).IgnoreError();
  return written;
}

absl::StatusOr<Submission> ReadRun(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  const storage::Url url = there.folder.Child(kJobFile);
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadWhole(*there.files, url, kMaxFile));
  auto submission = SubmissionFromJson(storage::ParseJson(text));
  return submission.ok() ? std::move(submission) : Annotate(submission.status(), url.ToString());
}

absl::StatusOr<std::optional<JobTls>> ReadTls(storage::Storage& storage,
                                              const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  const auto text = ReadWhole(*there.files, there.folder.Child(kTlsFile), kMaxFile);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(text.status());
  const nlohmann::json json = storage::ParseJson(*text);
  return JobTls{storage::TextMember(json, "authority"), storage::TextMember(json, "certificate"),
                storage::TextMember(json, "key")};
}

absl::Status RemoveRun(storage::Storage& storage, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const There there, Find(storage, folder));
  absl::Status first;
  // What says that the id is taken goes last.
  for (const char* name : {kTlsFile, kConfigFile, kJobFile}) {
    first.Update(there.files->Delete(there.folder.Child(name)));
  }
  return first;
}

}  // namespace muster::vertex
