#include "jobs/find/lookup.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "jobs/control/refresh.h"
#include "jobs/start/submit.h"
#include "platform/capabilities.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

// Looks a job up in the catalog of its platform, and adds it to the history if absent there.
// Returns NotFound if the platform has no catalog.
absl::StatusOr<job::JobRecord> FindInCatalog(Service& service, const std::string& reference,
                                             const Selection& selection) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(selection.platform));
  auto* catalog = platform::CapabilityOf<platform::JobCatalog>(*platform);
  if (catalog == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no job '", reference, "' on ", platform->name()));
  }
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          catalog->Import(reference, selection.target));
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  auto job = history->GetJob(submission.id);
  if (absl::IsNotFound(job.status())) job = AddImported(service, submission);
  MUSTER_RETURN_IF_ERROR(job.status());
  MUSTER_RETURN_IF_ERROR(Refresh(service, *job));
  return job;
}

// Returns InvalidArgument if the job's target contradicts the user's options.
absl::Status CheckOption(Service& service, const Selection& selection, const job::JobRecord& job) {
  if (selection.option.empty()) return absl::OkStatus();
  if (selection.option_platform != job.platform) {
    MUSTER_ASSIGN_OR_RETURN(const platform::Registration* registration,
                            service.platforms().RegistrationOf(selection.option_platform));
    return absl::InvalidArgumentError(absl::StrCat(selection.option, " is for jobs on ",
                                                   registration->traits.title, ", and ", job.id,
                                                   " is on ", job.platform));
  }
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  if (!submission.ok()) return absl::OkStatus();  // nothing to compare with
  const job::Target wanted = job::InheritTarget(submission->target, selection.target);
  if (job::RequestOf(wanted) == job::RequestOf(submission->target)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(selection.option, " does not match: ", job.id,
                                                 " is ", job::DescribeTarget(submission->target),
                                                 "; add --on ", job.platform,
                                                 " to look for a job of that name there"));
}

// The conditions that hold before and after a refresh alike.
bool MatchesBeforeRefresh(const JobQuery& query, const job::JobRecord& job) {
  if (job.created < query.since) return false;
  return query.name.empty() || ::fnmatch(query.name.c_str(), job.name.c_str(), 0) == 0;
}

// The conditions on the state, which a refresh may change.
bool MatchesAfterRefresh(const JobQuery& query, const job::JobRecord& job) {
  if (query.only_active && job::IsFinal(job.state)) return false;
  return query.states.empty() ||
         std::find(query.states.begin(), query.states.end(), job.state) != query.states.end();
}

// Adds a hint to the error for an unknown job: --on also finds jobs that other clients submitted.
absl::Status NameThePlatform(const Selection& selection, const absl::Status& status) {
  if (!absl::IsNotFound(status) || selection.option.empty()) return status;
  return absl::NotFoundError(absl::StrCat(status.message(), "; add --on ",
                                          selection.option_platform, " to look for it there"));
}

}  // namespace

absl::StatusOr<job::JobRecord> FindJob(Service& service, const std::string& reference,
                                       const Selection& selection) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  if (!selection.platform.empty()) {
    auto found = FindInCatalog(service, reference, selection);
    if (found.ok() || !absl::IsNotFound(found.status())) return found;
    const auto known = history->Resolve(reference);
    if (!known.ok() || known->platform != selection.platform) return found;
  }
  auto job = history->Resolve(reference);
  if (!job.ok()) return NameThePlatform(selection, job.status());
  MUSTER_RETURN_IF_ERROR(CheckOption(service, selection, *job));
  MUSTER_RETURN_IF_ERROR(Refresh(service, *job));
  return job;
}

std::optional<job::JobRecord> JobNamed(Service& service, const std::string& reference) {
  // Job names contain neither character. Skips opening the history for obvious paths.
  if (reference.find_first_of("./") != std::string::npos) return std::nullopt;
  const auto history = service.history();
  if (!history.ok()) return std::nullopt;
  auto job = (*history)->Resolve(reference);
  if (!job.ok() || (job->name != reference && job->id != reference)) return std::nullopt;
  return *std::move(job);
}

absl::StatusOr<job::JobRecord> LatestJob(Service& service) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  for (const bool only_active : {true, false}) {
    MUSTER_ASSIGN_OR_RETURN(
        auto jobs, history->ListJobs({.only_active = only_active, .limit = only_active ? 0 : 1}));
    for (job::JobRecord& job : jobs) {
      MUSTER_RETURN_IF_ERROR(Refresh(service, job));
      if (!only_active || !job::IsFinal(job.state)) return job;
    }
  }
  return absl::NotFoundError("there are no jobs yet; `muster run job.yaml` starts one");
}

absl::StatusOr<std::optional<job::JobRecord>> RunningJob(Service& service,
                                                         const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(auto jobs, history->ListJobs({.only_active = true}));
  for (job::JobRecord& job : jobs) {
    if (job.name != name || IsForeignJob(job)) continue;
    MUSTER_RETURN_IF_ERROR(Refresh(service, job));
    if (!job::IsFinal(job.state)) return job;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<job::JobRecord>> ListJobs(Service& service, const Selection& selection,
                                                     const JobQuery& query) {
  const std::string& platform_name = selection.platform;
  std::vector<job::JobRecord> jobs;
  platform::JobCatalog* catalog = nullptr;
  if (!platform_name.empty()) {
    MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(platform_name));
    catalog = platform::CapabilityOf<platform::JobCatalog>(*platform);
  }
  if (catalog != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(jobs, catalog->List(selection.target));
  } else {
    MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
    MUSTER_ASSIGN_OR_RETURN(jobs, history->ListJobs({.only_active = query.only_active}));
  }
  std::erase_if(jobs, [&](const job::JobRecord& job) {
    const bool elsewhere = !platform_name.empty() && job.platform != platform_name;
    return (catalog == nullptr && elsewhere) || !MatchesBeforeRefresh(query, job);
  });
  if (catalog == nullptr) {
    for (job::JobRecord& job : jobs) MUSTER_RETURN_IF_ERROR(Refresh(service, job));
  }
  std::erase_if(jobs, [&](const job::JobRecord& job) { return !MatchesAfterRefresh(query, job); });
  if (query.limit > 0 && jobs.size() > static_cast<size_t>(query.limit)) jobs.resize(query.limit);
  return jobs;
}

absl::StatusOr<std::vector<job::JobRecord>> ActiveJobs(Service& service,
                                                       const std::string& platform) {
  if (!platform.empty()) MUSTER_RETURN_IF_ERROR(service.platform(platform).status());
  MUSTER_ASSIGN_OR_RETURN(auto jobs, ListJobs(service, {}, {.only_active = true}));
  std::erase_if(jobs, [&platform](const job::JobRecord& job) {
    return IsForeignJob(job) || (!platform.empty() && job.platform != platform);
  });
  return jobs;
}

absl::StatusOr<std::vector<job::JobState>> ParseStates(const std::vector<std::string>& names) {
  const std::vector<std::string> known = job::JobStateNames();
  std::vector<job::JobState> states;
  for (const std::string& list : names) {
    for (const absl::string_view word : absl::StrSplit(list, ',')) {
      const auto name = std::find_if(known.begin(), known.end(), [word](const std::string& one) {
        return absl::EqualsIgnoreCase(one, word);
      });
      if (name == known.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("no state '", word, "'", base::DidYouMean(word, known),
                         "; the states are ", absl::StrJoin(known, ", ")));
      }
      states.push_back(*job::ParseJobState(*name));
    }
  }
  return states;
}

}  // namespace muster::jobs
