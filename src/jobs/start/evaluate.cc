#include "jobs/start/evaluate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "checkpoint/store.h"
#include "jobs/start/images.h"
#include "jobs/start/submit.h"
#include "storage/storage.h"

namespace muster::jobs {
namespace {

constexpr int64_t kMaxResultBytes = 1 << 20;

}  // namespace

absl::StatusOr<EvaluationPlan> PlanEvaluation(Service& service,
                                              const platform::EvaluationRequest& request,
                                              const std::string& job_id) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          service.platform(std::string(job::PlatformOf(request.target))));
  auto* evaluator = platform::CapabilityOf<platform::RemoteEvaluation>(*platform);
  if (evaluator == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot evaluate models on ", platform->name(), "; name the JOB instead"));
  }
  const absl::Status which = checkpoint::StepOf("", request.which).status();
  if (absl::IsInvalidArgument(which)) return which;
  EvaluationPlan plan;
  MUSTER_ASSIGN_OR_RETURN(plan.submission, evaluator->EvaluationOf(request));
  MUSTER_RETURN_IF_ERROR(ChooseJobId(service, job_id, "eval", plan.submission));
  plan.result = evaluator->SetResultFile(plan.submission);
  MUSTER_RETURN_IF_ERROR(platform->Prepare(plan.submission));
  return plan;
}

absl::StatusOr<job::JobRecord> StartEvaluation(Service& service, const EvaluationPlan& plan) {
  MUSTER_RETURN_IF_ERROR(PushImages(service, ImagesOf(service, plan.submission)));
  MUSTER_ASSIGN_OR_RETURN(base::FileLock lock, LockSubmissions(service));
  MUSTER_ASSIGN_OR_RETURN(const bool taken, TakeId(service, plan.submission));
  if (!taken) {
    return absl::AlreadyExistsError(
        absl::StrCat("another job has just taken the id '", plan.submission.id, "'; try again"));
  }
  return SubmitJob(service, plan.submission, std::move(lock));
}

absl::StatusOr<nlohmann::json> ReadEvaluation(const std::string& file) {
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(file));
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(url));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadWhole(*files, url, kMaxResultBytes));
  nlohmann::json result = base::ParseJson(text);
  const auto metrics = result.is_object() ? result.find("metrics") : result.end();
  if (!result.is_object() || metrics == result.end() || !metrics->is_object()) {
    return absl::DataLossError(absl::StrCat(file, ": is not the result of an evaluation"));
  }
  return result;
}

}  // namespace muster::jobs
