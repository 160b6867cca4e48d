#include "platform/vertex/overrides.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "codec/diagnostics.h"
#include "job/format/parse.h"
#include "job/format/train_section.h"
#include "job/job_rules.h"
#include "platform/vertex/pools.h"
#include "storage/url.h"

namespace muster::vertex {
namespace {

constexpr char kServerRole[] = "ps";

struct Count {
  absl::string_view option;
  const char* role;
  std::optional<int> value;
};

absl::Status SetReplicas(const Count& count, job::JobSpec& spec) {
  if (*count.value > job::kMaxReplicas) {
    return absl::InvalidArgumentError(
        absl::StrCat(count.option, " is ", *count.value, "; expected at most ", job::kMaxReplicas));
  }
  const auto found =
      std::find_if(spec.roles.begin(), spec.roles.end(),
                   [&](const job::RoleSpec& role) { return role.name == count.role; });
  if (*count.value == 0) {
    if (found != spec.roles.end()) spec.roles.erase(found);
    return absl::OkStatus();
  }
  if (found != spec.roles.end()) {
    found->replicas = *count.value;
    found->addresses.clear();
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const Pools pools, PoolsOf(spec));
  job::RoleSpec role = *spec.FindRole(pools.front().front().role);
  role.name = count.role;
  role.replicas = *count.value;
  role.port.reset();
  role.addresses.clear();
  spec.roles.push_back(std::move(role));
  return absl::OkStatus();
}

// Checks the rules between roles, as for a file. The file itself was valid. The parser has set the
// default strategy if the file has none, so that one follows the roles.
absl::Status CheckCounts(bool had_servers, job::JobSpec& spec) {
  if (spec.roles.empty()) {
    return absl::InvalidArgumentError(
        "--worker-count 0: the job has no other role, so nothing would train");
  }
  codec::Diagnostics diagnostics("--worker-count, --parameter-server-count");
  const job::RolePlaces places{.each = std::vector<codec::Mark>(spec.roles.size())};
  job::CheckRoles(spec, places, diagnostics);
  if (spec.train.is_object()) {
    const bool has_default =
        spec.train.value("strategy", "") == (had_servers ? "sync" : "allreduce");
    if (has_default) spec.train.erase("strategy");
    job::FitTrainToRoles(spec, {}, diagnostics);
  }
  return diagnostics.ToStatus();
}

absl::Status SetDataset(const std::string& dataset, job::JobSpec& spec) {
  if (dataset.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::string url, BucketUrl("--dataset", dataset));
  if (!spec.train.is_object()) {
    return absl::InvalidArgumentError(
        "--dataset is for the built-in trainer, but the job has no `train` section");
  }
  spec.train["data"]["path"] = url;
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyOverrides(const job::VertexTarget& target, job::JobSpec& spec) {
  const bool had_servers = spec.FindRole(kServerRole) != nullptr;
  const Count counts[] = {{"--worker-count", "worker", target.workers},
                          {"--parameter-server-count", kServerRole, target.parameter_servers}};
  bool changed = false;
  for (const Count& count : counts) {
    if (!count.value) continue;
    MUSTER_RETURN_IF_ERROR(SetReplicas(count, spec));
    changed = true;
  }
  if (changed) MUSTER_RETURN_IF_ERROR(CheckCounts(had_servers, spec));
  return SetDataset(target.dataset, spec);
}

absl::StatusOr<std::string> BucketUrl(absl::string_view option, absl::string_view text) {
  if (storage::IsRemote(text)) return std::string(text);
  const bool local = text.empty() || absl::StartsWith(text, "/") || absl::StartsWith(text, ".") ||
                     absl::StartsWith(text, "~");
  if (local) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, " ", text, ": must be a URL that the tasks can read, such as gs://BUCKET/data"));
  }
  const std::string url = absl::StrCat("gs://", text);
  if (const auto parsed = storage::ParseUrl(url); !parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", text, ": must be BUCKET/PATH: ", parsed.status().message()));
  }
  return url;
}

std::string BucketName(absl::string_view text) {
  return std::string(absl::StripSuffix(absl::StripPrefix(text, "gs://"), "/"));
}

}  // namespace muster::vertex
