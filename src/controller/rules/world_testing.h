// A simulated cluster with one job, for tests of the rules. It executes plans in order and can stop
// after any write.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/rules/create_failures.h"
#include "controller/rules/reconcile.h"
#include "gtest/gtest.h"
#include "manifest/kept_status.h"
#include "nlohmann/json.hpp"

namespace muster::controller {

// Returns a replica spec of a TFJob.
inline Json Replicas(int count, const char* restart = nullptr) {
  Json spec = {
      {"replicas", count},
      {"template", {{"spec", {{"containers", {{{"name", "tensorflow"}, {"image", "tf:1"}}}}}}}}};
  if (restart != nullptr) spec["restartPolicy"] = restart;
  return spec;
}

inline Json Job(const Json& replicas, const Json& run_policy = nullptr) {
  Json job = {{"apiVersion", "kubeflow.org/v1"},
              {"kind", "TFJob"},
              {"metadata", {{"name", "j"}}},
              {"spec", {{"tfReplicaSpecs", replicas}}}};
  if (!run_policy.is_null()) job["spec"]["runPolicy"] = run_policy;
  return job;
}

class World {
 public:
  explicit World(const Json& job, TfJobOptions options = DefaultOptions())
      : job_(job), options_(std::move(options)) {
    job_["metadata"]["uid"] = "uid-job";
    if (!job_["metadata"].contains("namespace")) job_["metadata"]["namespace"] = "default";
  }

  static TfJobOptions DefaultOptions() {
    return {.trainer_image = "trainer:1", .tensorboard_image = "board:1"};
  }

  // Reconciles once and executes at most `steps` writes. Returns true if the plan was empty.
  bool ReconcileOnce(int steps = std::numeric_limits<int>::max()) {
    if (deleted_) return true;
    Observed observed{.job = job_};
    for (const auto& [name, pod] : pods_) observed.pods.push_back(std::make_shared<Json>(pod));
    for (const auto& [name, service] : services_)
      observed.services.push_back(std::make_shared<Json>(service));
    for (const auto& [name, group] : pod_groups_)
      observed.pod_groups.push_back(std::make_shared<Json>(group));
    for (const auto& [name, config] : config_maps_)
      observed.config_maps.push_back(std::make_shared<Json>(config));
    observed.create_failures = create_failures_;
    const Plan plan = Reconcile(observed, options_, now_);
    requeue_at_ = plan.requeue_at;
    if (plan.status_changed && steps <= 0) return false;
    if (plan.status_changed) {
      --steps;
      ++writes_;
      WriteStatus(plan.status);
      for (const Event& event : plan.events) events_.push_back(event);
      const Json patch = manifest::PatchForPruned(job_, plan.status);
      if (!patch.is_null() && steps-- <= 0) return false;
      if (!patch.is_null()) {
        job_.merge_patch(patch);
        ++writes_;
      }
    }
    for (const Action& action : plan.actions) {
      if (steps-- <= 0) return false;
      std::visit([this](const auto& one) { Do(one); }, action);
      ++writes_;
    }
    return !plan.status_changed && plan.actions.empty();
  }

  // Reconciles until the plan is empty.
  void Settle() {
    for (int i = 0; i < 20; ++i) {
      if (ReconcileOnce()) return;
    }
    ADD_FAILURE() << "does not settle";
  }

  void SetPhase(const std::string& pod, const char* phase, std::optional<int> code = {}) {
    ASSERT_TRUE(pods_.contains(pod)) << pod;
    Json& status = pods_[pod]["status"];
    status["phase"] = phase;
    if (!code) return;
    status["containerStatuses"] =
        Json::array({{{"name", "tensorflow"}, {"state", {{"terminated", {{"exitCode", *code}}}}}}});
  }
  // Marks the pod as the API server does when its deletion is requested now.
  void Terminate(const std::string& pod, absl::Duration grace = absl::Seconds(30)) {
    ASSERT_TRUE(pods_.contains(pod)) << pod;
    Json& metadata = pods_[pod]["metadata"];
    metadata["deletionTimestamp"] = k8s::Timestamp(now_ + grace);
    metadata["deletionGracePeriodSeconds"] = absl::ToInt64Seconds(grace);
  }
  // From now on deleted pods terminate gracefully: they stay until Collect().
  void KeepDeleted() { keep_deleted_ = true; }
  void Collect() {
    std::erase_if(pods_, [](const auto& pod) { return k8s::IsBeingDeleted(pod.second); });
  }
  // From now on the status keeps only the fields of Kubeflow's CRD.
  void Prune() { prunes_ = true; }
  // From now on the API server rejects pods with that status. OK: it accepts them.
  void RejectPods(const absl::Status& status) { rejection_ = status; }
  void SetCondition(const std::string& pod, const char* type, const char* reason) {
    ASSERT_TRUE(pods_.contains(pod)) << pod;
    pods_[pod]["status"]["conditions"].push_back(
        {{"type", type}, {"status", "True"}, {"reason", reason}});
  }
  void SetAll(const char* phase) {
    for (const auto& [name, pod] : pods_) SetPhase(name, phase);
  }
  void Advance(absl::Duration time) { now_ += time; }

  Json& job() { return job_; }
  Json& status() { return job_["status"]; }
  std::map<std::string, Json>& pods() { return pods_; }
  std::map<std::string, Json>& services() { return services_; }
  std::map<std::string, Json>& pod_groups() { return pod_groups_; }
  std::map<std::string, Json>& config_maps() { return config_maps_; }
  std::vector<std::string> Pods() const { return NamesOf(pods_); }
  std::vector<std::string> Services() const { return NamesOf(services_); }
  std::vector<std::string> PodGroups() const { return NamesOf(pod_groups_); }
  std::vector<std::string> ConfigMaps() const { return NamesOf(config_maps_); }
  bool deleted() const { return deleted_; }
  int writes() const { return writes_; }
  int rejections() const { return rejections_; }
  absl::Time now() const { return now_; }
  absl::Time requeue_at() const { return requeue_at_; }
  // Returns the types of the conditions that are True, in order.
  std::string Conditions() const {
    std::string all;
    const Json status = StatusOf(job_);
    for (const Json& condition : status.value("conditions", Json::array())) {
      if (condition["status"] != "True") continue;
      absl::StrAppend(&all, all.empty() ? "" : " ", condition["type"].get<std::string>());
    }
    return all;
  }
  bool HasEvent(const std::string& reason) const {
    for (const Event& event : events_) {
      if (event.reason == reason) return true;
    }
    return false;
  }
  std::map<std::string, std::string> EnvOf(const std::string& pod) {
    std::map<std::string, std::string> env;
    for (const Json& container : pods_[pod]["spec"]["containers"]) {
      if (container["name"] != "tensorflow") continue;
      for (const Json& variable : container.value("env", Json::array())) {
        env[variable["name"]] = variable["value"];
      }
    }
    return env;
  }
  Json TfConfigOf(const std::string& pod) {
    const auto env = EnvOf(pod);
    const auto found = env.find("TF_CONFIG");
    return found == env.end() ? Json() : Json::parse(found->second);
  }

 private:
  static std::vector<std::string> NamesOf(const std::map<std::string, Json>& objects) {
    std::vector<std::string> names;
    names.reserve(objects.size());
    for (const auto& [name, object] : objects) names.push_back(name);
    return names;
  }
  std::map<std::string, Json>& Of(Kind kind) {
    return kind == Kind::kPod        ? pods_
           : kind == Kind::kService  ? services_
           : kind == Kind::kPodGroup ? pod_groups_
                                     : config_maps_;
  }

  void WriteStatus(const Json& status) {
    job_["status"] = status;
    if (!prunes_) return;
    job_["status"].erase("restarts");
    job_["status"].erase("succeeded");
  }

  void Do(const Create& create) {
    const Json meaning = {job_["spec"], job_["metadata"]};
    if (meaning != parsed_) {
      spec_ = std::make_shared<const job::JobSpec>(*TfJob::ReadSpec(job_));
      parsed_ = meaning;
    }
    const auto object = Build(TfJob(job_, spec_, options_), create);
    ASSERT_TRUE(object.ok()) << object.status();
    const std::string name = (*object)["metadata"]["name"];
    EXPECT_EQ(name, create.name);
    auto& objects = Of(create.kind);
    if (objects.contains(name)) return;  // 409
    if (create.kind == Kind::kPod && !rejection_.ok()) {
      ++rejections_;
      return AddCreateFailure(create_failures_, {create.kind, name}, rejection_, now_);
    }
    create_failures_.erase({create.kind, name});
    objects[name] = *object;
    objects[name]["metadata"]["uid"] = absl::StrCat("uid-", ++uids_);
  }
  void Do(const Delete& removal) {
    auto& objects = Of(removal.kind);
    const auto found = objects.find(removal.name);
    if (found == objects.end() || found->second["metadata"]["uid"] != removal.uid) return;
    if (keep_deleted_ && removal.kind == Kind::kPod && !removal.immediately) {
      Terminate(removal.name);
    } else {
      objects.erase(found);
    }
  }
  void Do(const Change& change) {
    const auto found = Of(change.kind).find(change.name);
    if (found == Of(change.kind).end()) return;  // 404
    Json patch = change.patch;
    Json& owners = patch["metadata"]["ownerReferences"];
    if (change.strategic && found->second["metadata"].contains("ownerReferences")) {
      for (const Json& own : found->second["metadata"]["ownerReferences"]) owners.push_back(own);
    }
    if (owners.is_null()) patch["metadata"].erase("ownerReferences");
    found->second.merge_patch(patch);
  }
  void Do(const DeleteJob&) { deleted_ = true; }

  Json job_;
  Json parsed_;  // the JSON that spec_ was parsed from
  std::shared_ptr<const job::JobSpec> spec_;
  const TfJobOptions options_;
  std::map<std::string, Json> pods_;
  std::map<std::string, Json> services_;
  std::map<std::string, Json> pod_groups_;
  std::map<std::string, Json> config_maps_;
  std::vector<Event> events_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Time requeue_at_;
  CreateFailures create_failures_;
  absl::Status rejection_;
  int rejections_ = 0;
  int uids_ = 0;
  int writes_ = 0;
  bool deleted_ = false;
  bool keep_deleted_ = false;
  bool prunes_ = false;
};

// Runs `scenario` once without interruption, and once for each of its writes with an operator that
// is killed after that write and restarted. Expects the same end. `scenario` calls settle() after
// each change of the world.
inline void ExpectSameEndWhereverInterrupted(
    const std::function<World()>& begin,
    const std::function<void(World& world, const std::function<void()>& settle)>& scenario) {
  const auto live = [&](World& world, int budget) {
    scenario(world, [&] {
      for (int i = 0; i < 60; ++i) {
        const int before = world.writes();
        const bool done = world.ReconcileOnce(budget);
        budget -= world.writes() - before;
        if (budget <= 0) budget = std::numeric_limits<int>::max();  // the operator restarts
        if (done) return;
      }
      ADD_FAILURE() << "does not settle";
    });
  };
  World whole = begin();
  live(whole, std::numeric_limits<int>::max());
  for (int at = 1; at <= whole.writes(); ++at) {
    World world = begin();
    live(world, at);
    EXPECT_EQ(StatusOf(world.job()), StatusOf(whole.job())) << "after " << at << " writes";
    EXPECT_EQ(world.Pods(), whole.Pods()) << "after " << at << " writes";
    EXPECT_EQ(world.Services(), whole.Services()) << "after " << at << " writes";
    EXPECT_EQ(world.PodGroups(), whole.PodGroups()) << "after " << at << " writes";
    EXPECT_EQ(world.ConfigMaps(), whole.ConfigMaps()) << "after " << at << " writes";
  }
}

}  // namespace muster::controller
