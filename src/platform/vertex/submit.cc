// Submission of a job to Vertex AI: from its options to a CustomJob.
#include <signal.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "platform/vertex/agent.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/observe.h"
#include "platform/vertex/package.h"
#include "platform/vertex/path_rewrite.h"
#include "platform/vertex/platform.h"
#include "platform/vertex/run_folder.h"
#include "process/held_signals.h"
#include "storage/gs/bucket.h"
#include "supervise/job_dir.h"
#include "worktree/credentials.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

// Number of and delay between lookups of a job whose creation got no response.
constexpr int kConfirmTries = 3;
constexpr absl::Duration kConfirmInterval = absl::Seconds(2);
constexpr int kLongestChain = 1000;

absl::Status AtStep(absl::string_view step, const absl::Status& status) {
  return base::Annotate(status, absl::StrCat("failed at ", step));
}

// Returns a unique name for a submission.
std::string NewNonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&nonce, absl::Hex(static_cast<uint32_t>(random()), absl::kZeroPad8));
  }
  return nonce;
}

// Returns true if the job may have been created despite the error.
bool IsUnanswered(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsDataLoss(status);
}

}  // namespace

absl::Status VertexPlatform::FollowChain(job::Submission& submission, job::VertexTarget& target) {
  if (submission.resumed_from.empty()) {
    if (!storage::IsRemote(submission.spec.model_dir) ||
        submission.spec.model_dir == target.run.folder) {
      submission.spec.model_dir = target.FolderOf(submission.id);
    }
    target.run.folder = submission.spec.model_dir;
    return absl::OkStatus();
  }
  const std::string& id = submission.resumed_from;
  auto before = FindRun(storage_, target, id);
  if (absl::IsNotFound(before.status())) {
    return absl::NotFoundError(absl::StrCat(
        "there is no job '", id, "' to resume: ", before.status().message(),
        "; `muster jobs --on vertex` lists jobs, and --bucket must name the bucket of that one"));
  }
  MUSTER_RETURN_IF_ERROR(before.status());
  if (!before->submission && submission.spec.train.is_object()) {
    return absl::FailedPreconditionError(absl::StrCat(
        before->folder, " was written by another tool, and the built-in trainer cannot read its ",
        "checkpoints; continue with the program that wrote them, as the `command` of the job"));
  }
  target.run.folder = before->submission ? before->submission->spec.model_dir : before->folder;
  submission.spec.model_dir = target.run.folder;
  return CheckUnused(std::move(before->submission), target);
}

// Other runs that resume the same chain may be in the project and region of any of its runs.
absl::Status VertexPlatform::CheckUnused(std::optional<job::Submission> resumed,
                                         const job::VertexTarget& target) {
  std::set<std::pair<std::string, std::string>> places = {{target.project, target.region}};
  for (int i = 1; resumed.has_value(); ++i) {
    const job::VertexTarget& there = job::TargetOf<job::VertexTarget>(*resumed);
    places.emplace(there.project, there.region);
    if (resumed->resumed_from.empty() || i == kLongestChain) break;
    auto before = FindRun(storage_, target, resumed->resumed_from);
    if (absl::IsNotFound(before.status())) break;
    MUSTER_RETURN_IF_ERROR(before.status());
    resumed = std::move(before->submission);
  }
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const std::string label = FolderLabel(target.run.folder);
  for (const auto& [project, region] : places) {
    auto jobs = client->ListJobs(project, region, LabelFilter(kFolderLabel, label));
    if (!jobs.ok()) {
      return base::Annotate(
          jobs.status(),
          absl::StrCat("cannot determine whether a job still writes to ", target.run.folder));
    }
    for (const Json& job : *jobs) {
      if (LabelOf(job, kFolderLabel) != label || EndOf(job, absl::Now())) continue;
      const std::string running = RecordOf(job, absl::Now()).id;
      return absl::FailedPreconditionError(
          absl::StrCat(running, " has not ended and still writes to ", target.run.folder,
                       "; stop it before you resume the job: muster stop ", running,
                       " --on vertex --project ", project, " --region ", region));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<worktree::WorkFile>> VertexPlatform::FilesOf(
    const job::Submission& submission, bool notice) const {
  return worktree::ListWorkDir(submission.working_dir,
                               {.home = environment_.home,
                                .keys = worktree::CredentialFiles(base::ProcessVariables()),
                                .notice = notice ? environment_.notify : nullptr});
}

absl::Status VertexPlatform::CheckFiles(const job::Submission& submission,
                                        const job::VertexTarget& target) const {
  if (!target.run.packages.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(worktree::CheckSendable(submission, base::ProcessVariables()));
  MUSTER_ASSIGN_OR_RETURN(const auto files, FilesOf(submission, /*notice=*/false));
  return CheckPaths(submission.spec, submission.working_dir, [&files](absl::string_view path) {
    return std::any_of(files.begin(), files.end(), [path](const worktree::WorkFile& file) {
      return path.empty() || file.path == path ||
             absl::StartsWith(file.path, absl::StrCat(path, "/"));
    });
  });
}

absl::StatusOr<std::string> VertexPlatform::SendFiles(job::Submission& submission,
                                                      const job::VertexTarget& target) {
  MUSTER_ASSIGN_OR_RETURN(auto files, FilesOf(submission, /*notice=*/true));
  MUSTER_ASSIGN_OR_RETURN(const std::string cache,
                          worktree::WorkDirCache(environment_.home, submission.working_dir));
  MUSTER_RETURN_IF_ERROR(worktree::HashFiles(submission.working_dir, files, cache).status());
  MUSTER_ASSIGN_OR_RETURN(const Sent sent, SendPackages(storage_,
                                                        {.root = submission.working_dir,
                                                         .bucket = target.bucket,
                                                         .again = target.rebuild},
                                                        files));
  job::MutableTargetOf<job::VertexTarget>(submission).run.packages = sent.packages;
  return absl::StrCat(base::Plural(static_cast<int64_t>(files.size()), "file"),
                      " of the working directory, ",
                      sent.bytes == 0 ? "all already in the bucket"
                                      : absl::StrCat(base::FormatBytes(sent.bytes), " sent"));
}

absl::Status VertexPlatform::SendAll(job::Submission& run) {
  // Nothing exists yet that Ctrl-C would leave behind.
  const process::ReleasedSignals interruptible({SIGINT});
  const job::VertexTarget target = job::TargetOf<job::VertexTarget>(run);
  MUSTER_ASSIGN_OR_RETURN(const auto client,
                          storage::GsClient::FromVariables(base::ProcessVariables()));
  MUSTER_RETURN_IF_ERROR(AtStep(
      "the bucket",
      storage::EnsureBucket(
          *client, {.name = target.bucket, .project = target.project, .location = target.region})
          .status()));
  if (NeedsAgent(run.spec)) {
    MUSTER_ASSIGN_OR_RETURN(const std::string path, FindAgent(environment_.program));
    const auto agent = SendAgent(storage_, target.bucket, path, target.rebuild);
    MUSTER_RETURN_IF_ERROR(AtStep("the program muster-agent", agent.status()));
    job::MutableTargetOf<job::VertexTarget>(run).run.agent_sha256 = *agent;
  }
  if (!target.run.packages.empty()) return absl::OkStatus();
  const auto sent = SendFiles(run, target);
  MUSTER_RETURN_IF_ERROR(AtStep("the package of the working directory", sent.status()));
  Note(*sent);
  return absl::OkStatus();
}

// A folder left by an earlier submission of this id is identified by its nonce and removed if it
// has no CustomJob. A CustomJob that appears later finds another nonce in the folder and ends.
absl::Status VertexPlatform::MakeRoom(job::Submission& run, const supervise::JobDir& dir) {
  const job::VertexTarget target = job::TargetOf<job::VertexTarget>(run);
  std::vector<std::string> tries = target.run.tries;
  tries.pop_back();
  if (tries.empty()) return absl::OkStatus();
  const auto left = ReadRun(storage_, target.FolderOf(run.id));
  if (absl::IsNotFound(left.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(left.status());
  const std::string nonce = job::TargetOf<job::VertexTarget>(*left).run.nonce();
  if (std::find(tries.begin(), tries.end(), nonce) == tries.end()) return absl::OkStatus();
  job::VertexTarget before = target;
  before.run.tries = {nonce};
  const auto found = FindOurs(before, run.id);
  if (absl::IsNotFound(found.status())) return RemoveRun(storage_, target.FolderOf(run.id));
  MUSTER_RETURN_IF_ERROR(found.status());
  run = *left;
  job::MutableTargetOf<job::VertexTarget>(run).run.custom_job = found->value("name", "");
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(run));
  return absl::UnknownError(absl::StrCat("an earlier submission of ", run.id,
                                         " has reached Vertex AI after all: `muster show ", run.id,
                                         "` shows it"));
}

absl::StatusOr<std::string> VertexPlatform::Create(const job::Submission& submission) {
  const job::VertexTarget target = job::TargetOf<job::VertexTarget>(submission);
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  MUSTER_ASSIGN_OR_RETURN(const auto body, CustomJobOf(submission, environment_.version));
  auto made = client->CreateJob(target.project, target.region, body);
  for (int i = 0; i < kConfirmTries && IsUnanswered(made.status()); ++i) {
    absl::SleepFor(i * kConfirmInterval);
    if (auto found = FindOurs(target, submission.id); found.ok()) made = *std::move(found);
  }
  if (IsUnanswered(made.status())) {
    return absl::UnknownError(absl::StrCat(
        made.status().message(), "; the job may or may not have been created: `muster show ",
        submission.id, "` looks for it, and `muster run … --job-id ", submission.id,
        "` replaces it"));
  }
  MUSTER_RETURN_IF_ERROR(made.status());
  const std::string resource_name = made->value("name", "");
  if (resource_name.empty()) return absl::UnknownError("Vertex AI: the new job has no name");
  return resource_name;
}

absl::Status VertexPlatform::Submit(const job::Submission& submission,
                                    const job::JobRecord& record) {
  const supervise::JobDir dir(record.directory);
  job::Submission run = submission;
  const std::string folder = job::TargetOf<job::VertexTarget>(run).FolderOf(run.id);
  // The nonce is saved before anything is sent, so that an interrupted submission can be found.
  job::MutableTargetOf<job::VertexTarget>(run).run.tries.push_back(NewNonce());
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(run));
  MUSTER_RETURN_IF_ERROR(SendAll(run));
  std::optional<job::JobTls> tls;
  if (NeedsTls(run.spec)) {
    MUSTER_ASSIGN_OR_RETURN(tls, job::MakeJobTls(run.id));
  }
  MUSTER_RETURN_IF_ERROR(AtStep("the folder of the run", MakeRoom(run, dir)));
  const auto written = WriteRun(storage_, folder, run, tls);
  MUSTER_RETURN_IF_ERROR(AtStep("the folder of the run", written.status()));
  job::VertexRun& made_of = job::MutableTargetOf<job::VertexTarget>(run).run;
  made_of.run_sha256 = *written;
  made_of.asked_us = absl::ToUnixMicros(absl::Now());
  absl::Status ready = dir.SaveSubmission(run);
  // Another run may have resumed the same job while files were sent.
  if (ready.ok() && !run.resumed_from.empty())
    ready = CheckUnused(run, job::TargetOf<job::VertexTarget>(run));
  const auto made = ready.ok() ? Create(run) : absl::StatusOr<std::string>(ready);
  if (!made.ok()) {
    // A job that may run needs its folder.
    if (!absl::IsUnknown(made.status()) && !RemoveRun(storage_, folder).ok()) {
      Note(absl::StrCat("cannot remove the folder of the run; remove it manually: ", folder));
    }
    return AtStep("the submission to Vertex AI", made.status());
  }
  job::MutableTargetOf<job::VertexTarget>(run).run.custom_job = *made;
  Note(absl::StrCat("submitted ", *made, "; its folder is ", folder));
  if (!run.resumed_from.empty()) {
    const absl::Status noted = WriteNewest(storage_, run.spec.model_dir, folder);
    if (!noted.ok()) {
      Note(absl::StrCat("`muster evaluate` will use the configuration of an earlier run: ",
                        noted.message()));
    }
  }
  return dir.SaveSubmission(run);
}

}  // namespace muster::vertex
