// A cluster with one job in it, for tests of the rules: it does what plans say, in their order, and
// can stop at any point.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/reconcile.h"
#include "controller/refusals.h"
#include "gtest/gtest.h"
#include "launch/kubernetes/kept_status.h"
#include "nlohmann/json.hpp"

namespace muster::controller {

// Of a TFJob.
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

  // One pass; at most `steps` of its writes are made. True when all were, and there were none left.
  bool Pass(int steps = std::numeric_limits<int>::max()) {
    if (deleted_) return true;
    Observed observed{.job = job_};
    for (const auto& [name, pod] : pods_) observed.pods.push_back(std::make_shared<Json>(pod));
    for (const auto& [name, service] : services_)
      observed.services.push_back(std::make_shared<Json>(service));
    for (const auto& [name, group] : pod_groups_)
      observed.pod_groups.push_back(std::make_shared<Json>(group));
    observed.refused = refused_;
    const Plan plan = Reconcile(observed, options_, now_);
    wake_ = plan.wake;
    if (plan.status_changed && steps <= 0) return false;
    if (plan.status_changed) {
      --steps;
      ++writes_;
      WriteStatus(plan.status);
      for (const Event& event : plan.events) events_.push_back(event);
      const Json patch = kubernetes::PatchForPruned(job_, plan.status);
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

  // Until nothing is left to do.
  void Settle() {
    for (int i = 0; i < 20; ++i) {
      if (Pass()) return;
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
  // The pod as the API server has it when its deletion was requested now, and its node has yet to
  // end it.
  void Terminate(const std::string& pod, absl::Duration grace = absl::Seconds(30)) {
    ASSERT_TRUE(pods_.contains(pod)) << pod;
    Json& metadata = pods_[pod]["metadata"];
    metadata["deletionTimestamp"] = k8s::Timestamp(now_ + grace);
    metadata["deletionGracePeriodSeconds"] = absl::ToInt64Seconds(grace);
  }
  // From now on pods that are deleted stay until Collect(), as those of a node do.
  void KeepDeleted() { keep_deleted_ = true; }
  void Collect() {
    std::erase_if(pods_, [](const auto& pod) { return k8s::IsBeingDeleted(pod.second); });
  }
  // From now on the status has only the fields that Kubeflow's CRD has.
  void Prune() { prunes_ = true; }
  // From now on no pod can be created, for that reason; OK: they can.
  void Refuse(const absl::Status& status) { refusal_ = status; }
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
  std::vector<std::string> Pods() const { return NamesOf(pods_); }
  std::vector<std::string> Services() const { return NamesOf(services_); }
  std::vector<std::string> PodGroups() const { return NamesOf(pod_groups_); }
  bool deleted() const { return deleted_; }
  int writes() const { return writes_; }
  int refusals() const { return refusals_; }
  absl::Time now() const { return now_; }
  absl::Time wake() const { return wake_; }
  // The types of the conditions that hold, in order.
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
    return kind == Kind::kPod ? pods_ : kind == Kind::kService ? services_ : pod_groups_;
  }

  void WriteStatus(const Json& status) {
    job_["status"] = status;
    if (!prunes_) return;
    job_["status"].erase("restarts");
    job_["status"].erase("succeeded");
  }

  void Do(const Create& create) {
    const Json meaning = {job_["spec"], job_["metadata"]};
    if (meaning != meaning_) {
      spec_ = std::make_shared<const JobSpec>(*TfJob::ReadSpec(job_));
      meaning_ = meaning;
    }
    const auto object = Build(TfJob(job_, spec_, options_), create);
    ASSERT_TRUE(object.ok()) << object.status();
    const std::string name = (*object)["metadata"]["name"];
    EXPECT_EQ(name, create.name);
    auto& objects = Of(create.kind);
    if (objects.contains(name)) return;  // 409
    if (create.kind == Kind::kPod && !refusal_.ok()) {
      ++refusals_;
      return AddRefusal(refused_, {create.kind, name}, refusal_, now_);
    }
    refused_.erase({create.kind, name});
    objects[name] = *object;
    objects[name]["metadata"]["uid"] = absl::StrCat("uid-", ++uids_);
  }
  void Do(const Delete& removal) {
    auto& objects = Of(removal.kind);
    const auto found = objects.find(removal.name);
    if (found == objects.end() || found->second["metadata"]["uid"] != removal.uid) return;
    if (keep_deleted_ && removal.kind == Kind::kPod && !removal.at_once) {
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
  Json meaning_;  // of which spec_ was read
  std::shared_ptr<const JobSpec> spec_;
  const TfJobOptions options_;
  std::map<std::string, Json> pods_;
  std::map<std::string, Json> services_;
  std::map<std::string, Json> pod_groups_;
  std::vector<Event> events_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Time wake_;
  Refusals refused_;
  absl::Status refusal_;
  int refusals_ = 0;
  int uids_ = 0;
  int writes_ = 0;
  bool deleted_ = false;
  bool keep_deleted_ = false;
  bool prunes_ = false;
};

// Plays `life` once as it is, and once for each of its writes, killed after it and started again:
// the same end. `life` calls settle() after each thing that it does to the world.
inline void ExpectSameEndWhereverInterrupted(
    const std::function<World()>& begin,
    const std::function<void(World& world, const std::function<void()>& settle)>& life) {
  const auto live = [&](World& world, int budget) {
    life(world, [&] {
      for (int i = 0; i < 60; ++i) {
        const int before = world.writes();
        const bool done = world.Pass(budget);
        budget -= world.writes() - before;
        if (budget <= 0) budget = std::numeric_limits<int>::max();  // starts again
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
  }
}

}  // namespace muster::controller
