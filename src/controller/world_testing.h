// A cluster with one job in it, for tests of the rules: it does what plans say, in their order, and
// can stop at any point.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/reconcile.h"
#include "gtest/gtest.h"
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
    const Plan plan = Reconcile(observed, options_, now_);
    wake_ = plan.wake;
    if (plan.status_changed && steps-- > 0) {
      job_["status"] = plan.status;
      ++writes_;
      for (const Event& event : plan.events) events_.push_back(event);
    } else if (plan.status_changed) {
      return false;
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

  void Do(const Create& create) {
    const std::string name = create.object["metadata"]["name"];
    auto& objects = Of(create.kind);
    if (objects.contains(name)) return;  // 409
    objects[name] = create.object;
    objects[name]["metadata"]["uid"] = absl::StrCat("uid-", ++uids_);
  }
  void Do(const Delete& removal) {
    auto& objects = Of(removal.kind);
    const auto found = objects.find(removal.name);
    if (found != objects.end() && found->second["metadata"]["uid"] == removal.uid) {
      objects.erase(found);
    }
  }
  void Do(const Change& change) {
    const auto found = Of(change.kind).find(change.name);
    if (found == Of(change.kind).end()) return;  // 404
    found->second.merge_patch(change.patch);
  }
  void Do(const DeleteJob&) { deleted_ = true; }

  Json job_;
  const TfJobOptions options_;
  std::map<std::string, Json> pods_;
  std::map<std::string, Json> services_;
  std::map<std::string, Json> pod_groups_;
  std::vector<Event> events_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Time wake_;
  int uids_ = 0;
  int writes_ = 0;
  bool deleted_ = false;
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
    EXPECT_EQ(world.status(), whole.status()) << "after " << at << " writes";
    EXPECT_EQ(world.Pods(), whole.Pods()) << "after " << at << " writes";
    EXPECT_EQ(world.Services(), whole.Services()) << "after " << at << " writes";
    EXPECT_EQ(world.PodGroups(), whole.PodGroups()) << "after " << at << " writes";
  }
}

}  // namespace muster::controller
