// Submission of a job to Vertex AI: from its options to a CustomJob.
#include <signal.h>

#include <algorithm>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/observe.h"
#include "platform/vertex/package.h"
#include "platform/vertex/path_rewrite.h"
#include "platform/vertex/platform.h"
#include "platform/vertex/run_folder.h"
#include "storage/gs/bucket.h"
#include "supervise/job_dir.h"
#include "worktree/credentials.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

// Number and spacing of the lookups for a job whose creation was not answered.
constexpr int kLooks = 3;
constexpr absl::Duration kBetweenLooks = absl::Seconds(2);
constexpr int kLongestChain = 1000;

absl::Status AtStep(absl::string_view step, const absl::Status& status) {
  return Annotate(status, absl::StrCat("failed at ", step));
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

// Unblocks SIGINT, so that Ctrl-C ends the program. Used while nothing exists yet that would be
// left behind.
class Interruptible {
 public:
  Interruptible() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_UNBLOCK, &set, &before_);
  }
  ~Interruptible() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  sigset_t before_{};
};

// Returns true if the job may have been created despite the error.
bool IsUnanswered(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsDataLoss(status);
}

}  // namespace

absl::Status VertexPlatform::FollowChain(Submission& submission, VertexTarget& target) {
  if (submission.resumed_from.empty()) {
    if (!storage::IsRemote(submission.spec.model_dir) ||
        submission.spec.model_dir == target.run.folder) {
      submission.spec.model_dir = target.FolderOf(submission.id);
    }
    target.run.folder = submission.spec.model_dir;
    return absl::OkStatus();
  }
  const std::string& id = submission.resumed_from;
  const auto before = ReadRun(storage_, target.FolderOf(id));
  if (absl::IsNotFound(before.status())) {
    return absl::NotFoundError(absl::StrCat(
        "there is no job '", id, "' to resume: gs://", target.bucket, " has no folder muster_", id,
        "; `muster jobs --on vertex` lists jobs, and --bucket must name the bucket of that one"));
  }
  MUSTER_RETURN_IF_ERROR(before.status());
  target.run.folder = before->spec.model_dir;
  submission.spec.model_dir = target.run.folder;
  return CheckUnused(submission, target);
}

// Other runs that resume the same chain may be in the project and region of any of its runs.
absl::Status VertexPlatform::CheckUnused(const Submission& submission, const VertexTarget& target) {
  std::set<std::pair<std::string, std::string>> places = {{target.project, target.region}};
  std::string id = submission.resumed_from;
  for (int i = 0; i < kLongestChain && !id.empty(); ++i) {
    const auto run = ReadRun(storage_, target.FolderOf(id));
    if (absl::IsNotFound(run.status())) break;
    MUSTER_RETURN_IF_ERROR(run.status());
    const VertexTarget there = TargetOf<VertexTarget>(*run);
    places.emplace(there.project, there.region);
    id = run->resumed_from;
  }
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const std::string label = FolderLabel(target.run.folder);
  for (const auto& [project, region] : places) {
    auto jobs = client->ListJobs(project, region, LabelFilter(kFolderLabel, label));
    if (!jobs.ok()) {
      return Annotate(jobs.status(), absl::StrCat("whether a job still writes to ",
                                                  target.run.folder, " cannot be seen"));
    }
    for (const Json& job : *jobs) {
      if (LabelOf(job, kFolderLabel) != label || EndOf(job, absl::Now())) continue;
      const std::string running = RecordOf(job, absl::Now()).id;
      return absl::FailedPreconditionError(
          absl::StrCat(running, " has not ended, and writes to ", target.run.folder,
                       "; stop it before the job is resumed: muster stop ", running,
                       " --on vertex --project ", project, " --region ", region));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WorkFile>> VertexPlatform::FilesOf(const Submission& submission,
                                                              bool notice) const {
  return ListWorkDir(submission.working_dir, {.home = options_.home,
                                              .keys = CredentialFiles(ProcessVariables()),
                                              .notice = notice ? options_.note : nullptr});
}

absl::Status VertexPlatform::CheckFiles(const Submission& submission,
                                        const VertexTarget& target) const {
  if (!target.run.packages.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckSendable(submission, ProcessVariables()));
  MUSTER_ASSIGN_OR_RETURN(const auto files, FilesOf(submission, /*notice=*/false));
  return CheckPaths(submission.spec, submission.working_dir, [&files](absl::string_view path) {
    return std::any_of(files.begin(), files.end(), [path](const WorkFile& file) {
      return path.empty() || file.path == path ||
             absl::StartsWith(file.path, absl::StrCat(path, "/"));
    });
  });
}

absl::StatusOr<std::string> VertexPlatform::SendFiles(Submission& submission,
                                                      const VertexTarget& target) {
  MUSTER_ASSIGN_OR_RETURN(auto files, FilesOf(submission, /*notice=*/true));
  MUSTER_ASSIGN_OR_RETURN(const std::string cache,
                          WorkDirCache(options_.home, submission.working_dir));
  MUSTER_RETURN_IF_ERROR(HashFiles(submission.working_dir, files, cache).status());
  MUSTER_ASSIGN_OR_RETURN(const Sent sent, SendPackages(storage_,
                                                        {.root = submission.working_dir,
                                                         .bucket = target.bucket,
                                                         .again = target.rebuild},
                                                        files));
  MutableTargetOf<VertexTarget>(submission).run.packages = sent.packages;
  return absl::StrCat(
      Plural(static_cast<int64_t>(files.size()), "file"), " of the working directory, ",
      sent.bytes == 0 ? "all there already" : absl::StrCat(FormatBytes(sent.bytes), " sent"));
}

absl::Status VertexPlatform::SendAll(Submission& run) {
  const Interruptible nothing_is_made;
  const VertexTarget target = TargetOf<VertexTarget>(run);
  MUSTER_ASSIGN_OR_RETURN(const auto client, storage::GsClient::FromVariables(ProcessVariables()));
  MUSTER_RETURN_IF_ERROR(AtStep(
      "the bucket",
      storage::EnsureBucket(
          *client, {.name = target.bucket, .project = target.project, .location = target.region})));
  if (!target.run.packages.empty()) return absl::OkStatus();
  const auto sent = SendFiles(run, target);
  MUSTER_RETURN_IF_ERROR(AtStep("the package of the working directory", sent.status()));
  Note(*sent);
  return absl::OkStatus();
}

// A folder left by an earlier submission of this id is identified by its nonce and removed if it
// has no CustomJob. A CustomJob that appears later finds another nonce in the folder and ends.
absl::Status VertexPlatform::MakeRoom(Submission& run, const JobDir& dir) {
  const VertexTarget target = TargetOf<VertexTarget>(run);
  std::vector<std::string> tries = target.run.tries;
  tries.pop_back();
  if (tries.empty()) return absl::OkStatus();
  const auto left = ReadRun(storage_, target.FolderOf(run.id));
  if (absl::IsNotFound(left.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(left.status());
  const std::string nonce = TargetOf<VertexTarget>(*left).run.nonce();
  if (std::find(tries.begin(), tries.end(), nonce) == tries.end()) return absl::OkStatus();
  VertexTarget before = target;
  before.run.tries = {nonce};
  const auto found = FindOurs(before, run.id);
  if (absl::IsNotFound(found.status())) return RemoveRun(storage_, target.FolderOf(run.id));
  MUSTER_RETURN_IF_ERROR(found.status());
  run = *left;
  MutableTargetOf<VertexTarget>(run).run.custom_job = found->value("name", "");
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(run));
  return absl::UnknownError(absl::StrCat("an earlier submission of ", run.id,
                                         " has reached Vertex AI after all: `muster show ", run.id,
                                         "` tells of it"));
}

absl::StatusOr<std::string> VertexPlatform::Create(const Submission& submission) {
  const VertexTarget target = TargetOf<VertexTarget>(submission);
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  MUSTER_ASSIGN_OR_RETURN(const auto body, CustomJobOf(submission, options_.version));
  auto made = client->CreateJob(target.project, target.region, body);
  for (int i = 0; i < kLooks && IsUnanswered(made.status()); ++i) {
    absl::SleepFor(i * kBetweenLooks);
    if (auto found = FindOurs(target, submission.id); found.ok()) made = *std::move(found);
  }
  if (IsUnanswered(made.status())) {
    return absl::UnknownError(absl::StrCat(
        made.status().message(), "; whether the job was made is not known: `muster show ",
        submission.id, "` looks for it, and `muster run … --job-id ", submission.id,
        "` takes its place"));
  }
  MUSTER_RETURN_IF_ERROR(made.status());
  const std::string resource_name = made->value("name", "");
  if (resource_name.empty()) return absl::UnknownError("Vertex AI: the new job has no name");
  return resource_name;
}

absl::Status VertexPlatform::Submit(const Submission& submission, const JobRecord& record) {
  const JobDir dir(record.directory);
  Submission run = submission;
  const std::string folder = TargetOf<VertexTarget>(run).FolderOf(run.id);
  // The nonce is saved before anything is sent, so that an interrupted submission can be found.
  MutableTargetOf<VertexTarget>(run).run.tries.push_back(NewNonce());
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(run));
  MUSTER_RETURN_IF_ERROR(SendAll(run));
  std::optional<JobTls> tls;
  if (NeedsTls(run.spec)) {
    MUSTER_ASSIGN_OR_RETURN(tls, MakeJobTls(run.id));
  }
  MUSTER_RETURN_IF_ERROR(AtStep("the folder of the run", MakeRoom(run, dir)));
  const auto written = WriteRun(storage_, folder, run, tls);
  MUSTER_RETURN_IF_ERROR(AtStep("the folder of the run", written.status()));
  VertexRun& made_of = MutableTargetOf<VertexTarget>(run).run;
  made_of.run_sha256 = *written;
  made_of.asked_us = absl::ToUnixMicros(absl::Now());
  absl::Status ready = dir.SaveSubmission(run);
  // Another run may have resumed the same job while files were sent.
  if (ready.ok() && !run.resumed_from.empty())
    ready = CheckUnused(run, TargetOf<VertexTarget>(run));
  const auto made = ready.ok() ? Create(run) : absl::StatusOr<std::string>(ready);
  if (!made.ok()) {
    // A job that may run needs its folder.
    if (!absl::IsUnknown(made.status()) && !RemoveRun(storage_, folder).ok()) {
      Note(absl::StrCat("to be removed by hand: ", folder));
    }
    return AtStep("the submission to Vertex AI", made.status());
  }
  MutableTargetOf<VertexTarget>(run).run.custom_job = *made;
  Note(absl::StrCat("submitted ", *made, "; its folder is ", folder));
  return dir.SaveSubmission(run);
}

}  // namespace muster::vertex
