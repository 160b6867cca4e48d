#include "job/submission.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::job {

bool HasGeneratedSource(const Submission& submission) {
  return absl::StrContains(submission.source_name, " + ");
}

nlohmann::json SubmissionToJson(const Submission& submission) {
  nlohmann::json json = {
      {"id", submission.id},
      {"spec", JobSpecToJson(submission.spec)},
      {"source_name", submission.source_name},
      {"source", submission.source},
      {"working_dir", submission.working_dir},
      {"trainer", submission.trainer},
      {"created_us", absl::ToUnixMicros(submission.created)},
      {"resumed_from", submission.resumed_from},
      {"target", TargetToJson(submission.target)},
  };
  if (submission.resume_step.has_value()) json["resume_step"] = *submission.resume_step;
  if (submission.send_home) json["send_home"] = true;
  if (submission.version != WorkVersion()) {
    json["version"] = {{"program", submission.version.program},
                       {"train", submission.version.train}};
  }
  if (submission.generation != 0) json["generation"] = submission.generation;
  return json;
}

absl::StatusOr<Submission> SubmissionFromJson(const nlohmann::json& json) {
  // The document was written by SubmissionToJson(), so an exception means that it is damaged.
  try {
    Submission submission;
    MUSTER_ASSIGN_OR_RETURN(submission.spec, JobSpecFromJson(json.at("spec")));
    submission.id = json.at("id").get<std::string>();
    submission.source_name = json.at("source_name").get<std::string>();
    submission.source = json.at("source").get<std::string>();
    submission.working_dir = json.at("working_dir").get<std::string>();
    submission.trainer = json.at("trainer").get<std::string>();
    submission.created = absl::FromUnixMicros(json.at("created_us").get<int64_t>());
    submission.resumed_from = json.at("resumed_from").get<std::string>();
    if (json.contains("resume_step")) submission.resume_step = json["resume_step"].get<int64_t>();
    submission.send_home = json.value("send_home", false);
    if (json.contains("version")) {
      submission.version = {.program = json["version"].at("program").get<std::string>(),
                            .train = json["version"].at("train").get<std::string>()};
    }
    submission.generation = json.value("generation", 0);
    submission.target = json.contains("target")
                            ? TargetFromJson(json["target"])
                            : TargetFromPlace(json.value("place", nlohmann::json()));
    return submission;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("not a submission: ", error.what()));
  }
}

}  // namespace muster::job
