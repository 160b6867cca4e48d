#include "controller/job_informers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "controller/job_key.h"
#include "controller/rules/cached_object.h"
#include "controller/rules/gang.h"
#include "k8s/error.h"

namespace muster::controller {
namespace {

constexpr absl::Duration kSyncTimeout = absl::Minutes(2);

std::string PathOf(const k8s::ResourceKind& kind) {
  return absl::StrCat(kind.group, "/", kind.plural);
}

}  // namespace

JobInformers::JobInformers(k8s::Client& client, JobInformerOptions options, JobHandler handler)
    : client_(client), options_(std::move(options)), handler_(std::move(handler)) {
  WatchJobs(manifest::kTfJobs);
  WatchJobs(kTfJobsV1Alpha1);
  WatchOwned(Kind::kPod);
  WatchOwned(Kind::kService);
  WatchOwned(Kind::kConfigMap);
  if (options_.gang != GangScheduler::kNone) WatchOwned(Kind::kPodGroup);
}

k8s::InformerOptions JobInformers::OptionsFor(const k8s::ResourceKind& kind) {
  k8s::InformerOptions options{.kind = kind};
  options.selection.ns = options_.ns;
  options.on_error = [this, kind](const absl::Status& status) {
    options_.log(absl::StrCat(kind.plural, ": ", status.message()));
    // FailedPrecondition is a server whose certificate is not trusted.
    if (k8s::IsUnknownResource(status) || k8s::IsForbidden(status) ||
        absl::IsUnauthenticated(status) || absl::IsFailedPrecondition(status)) {
      absl::MutexLock lock(&mutex_);
      broken_[PathOf(kind)] = status;
    }
  };
  return options;
}

void JobInformers::WatchJobs(const k8s::ResourceKind& kind) {
  k8s::InformerOptions options = OptionsFor(kind);
  options.transform = DropManagedFields;
  options.on_error = [this, kind, broken = options.on_error](const absl::Status& status) {
    // v1alpha1 is optional: neither its CRD nor the permission to list it is required.
    const bool optional = kind.group == kTfJobsV1Alpha1.group && k8s::IsForbidden(status);
    if (!k8s::IsUnknownResource(status) && !optional) return broken(status);
    absl::MutexLock lock(&mutex_);
    if (!missing_.emplace(PathOf(kind), status).second) return;  // logged before
    options_.log(absl::StrCat(status.message(), "; jobs of ", kind.ApiVersion(),
                              " wait until it is available"));
  };
  k8s::InformerHandler handler{
      .added = [this](const k8s::Object& job) { handler_.job_added(*job); },
      .updated = [this](const k8s::Object&, const k8s::Object& job) { handler_.job_updated(*job); },
      .deleted = [this](const k8s::Object& job) { handler_.job_deleted(*job); }};
  jobs_[std::string(kind.group)] =
      std::make_unique<k8s::Informer>(client_, std::move(options), std::move(handler));
}

void JobInformers::TolerateForbidden(const k8s::ResourceKind& kind, k8s::InformerOptions& options) {
  options.on_error = [this, kind, broken = options.on_error](const absl::Status& status) {
    if (!k8s::IsForbidden(status)) return broken(status);
    absl::MutexLock lock(&mutex_);
    if (missing_.emplace(PathOf(kind), status).second) options_.log(std::string(status.message()));
  };
}

void JobInformers::WatchOwned(Kind kind) {
  k8s::InformerOptions options = OptionsFor(ResourceOf(kind, options_.gang));
  options.selection.labels = OwnedSelector();
  options.index = OwnerKeyOf;
  options.watch.detail = kind == Kind::kPodGroup ? k8s::Detail::kAll
                         : kind == Kind::kPod    ? k8s::Detail::kStatus
                                                 : k8s::Detail::kMetadata;
  // Only jobs of v1alpha1, which are optional, need a ConfigMap.
  if (kind == Kind::kConfigMap) TolerateForbidden(k8s::kConfigMaps, options);
  options.transform = [kind](Json& object) {
    if (kind == Kind::kPodGroup) {
      DropManagedFields(object);
      object["status"] = {{"phase", k8s::TextAt(object, "/status/phase")}};
    } else {
      TrimForCache(object);
    }
  };
  const auto changed = [this, kind](const k8s::Object& object) {
    handler_.owned_changed(kind, *object, /*deleted=*/false);
  };
  k8s::InformerHandler handler{
      .added = changed,
      .updated = [changed](const k8s::Object&, const k8s::Object& object) { changed(object); },
      .deleted =
          [this, kind](const k8s::Object& object) {
            handler_.owned_changed(kind, *object, /*deleted=*/true);
          }};
  owned_[kind] = std::make_unique<k8s::Informer>(client_, std::move(options), std::move(handler));
}

std::vector<k8s::Informer*> JobInformers::All() const {
  std::vector<k8s::Informer*> all;
  for (const auto& [group, informer] : jobs_) all.push_back(informer.get());
  for (const auto& [kind, informer] : owned_) all.push_back(informer.get());
  return all;
}

void JobInformers::Start() {
  for (k8s::Informer* informer : All()) informer->Start();
}

void JobInformers::Stop() {
  for (k8s::Informer* informer : All()) informer->Stop();
}

absl::Status JobInformers::WaitUntilSynced(const std::stop_token& stop) {
  const absl::Time limit = absl::Now() + kSyncTimeout;
  const auto wait = [&](const k8s::Informer& informer, const std::string& path) {
    while (!informer.WaitUntilSynced(absl::Milliseconds(100)) && !stop.stop_requested()) {
      absl::MutexLock lock(&mutex_);
      if (broken_.contains(path)) return broken_.at(path);
      if (missing_.contains(path)) return absl::OkStatus();
      if (absl::Now() > limit) {
        return absl::UnavailableError(absl::StrCat(
            "timed out after ", absl::FormatDuration(kSyncTimeout), " waiting for the API server"));
      }
    }
    return absl::OkStatus();
  };
  for (const k8s::ResourceKind& kind : {manifest::kTfJobs, kTfJobsV1Alpha1}) {
    MUSTER_RETURN_IF_ERROR(wait(*jobs_.at(std::string(kind.group)), PathOf(kind)));
  }
  for (const auto& [kind, informer] : owned_) {
    MUSTER_RETURN_IF_ERROR(wait(*informer, PathOf(ResourceOf(kind, options_.gang))));
  }
  absl::MutexLock lock(&mutex_);
  const auto first = missing_.find(PathOf(manifest::kTfJobs));
  return first != missing_.end() && missing_.contains(PathOf(kTfJobsV1Alpha1)) ? first->second
                                                                               : absl::OkStatus();
}

k8s::Object JobInformers::Job(const std::string& key) const {
  const std::vector<std::string> parts = absl::StrSplit(key, '/');
  return jobs_.at(parts.at(0))->cache().Get({parts.at(1), parts.at(2)});
}

size_t JobInformers::JobCount() const {
  size_t count = 0;
  for (const auto& [group, informer] : jobs_) count += informer->cache().All().size();
  return count;
}

std::vector<k8s::Object> JobInformers::Owned(Kind kind, const std::string& key) const {
  const auto informer = owned_.find(kind);
  return informer == owned_.end() ? std::vector<k8s::Object>()
                                  : informer->second->cache().Indexed(key);
}

}  // namespace muster::controller
