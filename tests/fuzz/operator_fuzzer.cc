// Feeds a job and its pods, as YAML documents, to the operator: webhook, Reconcile(), pods, status.
// Nothing throws, the webhook rejects exactly the jobs that the operator fails as invalid, and
// every pod of an admitted job can be built.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "codec/diagnostics.h"
#include "codec/node.h"
#include "codec/yaml.h"
#include "controller/rules/conditions.h"
#include "controller/rules/reconcile.h"
#include "controller/rules/tfjob.h"
#include "controller/server/admission.h"

namespace {

using muster::controller::Json;

constexpr size_t kMaxTasks = 64;  // more take longer and find no more bugs
constexpr int kRounds = 4;

// Sets the metadata that the API server guarantees for every object.
void GiveMetadata(Json& object, const std::string& name) {
  Json& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  for (const char* map : {"labels", "annotations"}) {
    if (!metadata.contains(map)) continue;
    bool texts = metadata[map].is_object();
    for (const Json& value : metadata[map]) texts = texts && value.is_string();
    if (!texts) metadata.erase(map);
  }
  if (!metadata.contains("name") || !metadata["name"].is_string()) metadata["name"] = name;
  metadata["namespace"] = "default";
  metadata["uid"] = "uid-" + name;
  metadata["generation"] = 1;
}

class World {
 public:
  World(Json job, std::vector<Json> pods) : job_(std::move(job)) {
    for (Json& pod : pods) {
      const std::string name = muster::k8s::NameOf(pod);
      pods_[name] = std::move(pod);
    }
  }

  bool IsAllowed() const {
    const Json review = muster::controller::Review(
        {{"request", {{"uid", "u"}, {"operation", "CREATE"}, {"object", job_}}}}, options_);
    Dump(review);
    return review["response"]["allowed"].get<bool>();
  }

  // Reconciles once. Returns whether the job has Failed because it is invalid.
  bool ReconcileOnce(int turn, bool allowed) {
    muster::controller::Observed observed{.job = job_};
    for (const auto& [name, pod] : pods_) observed.pods.push_back(std::make_shared<Json>(pod));
    const auto plan = muster::controller::Reconcile(
        observed, options_, absl::FromUnixSeconds(1'800'000'000 + turn * 100));
    Dump(plan.status);
    for (const auto& action : plan.actions) Do(action, allowed);
    job_["status"] = plan.status;
    const Json* failed = muster::k8s::FindTrueCondition(plan.status, "Failed");
    return failed != nullptr && muster::k8s::TextAt(*failed, "/reason") == "FailedValidation";
  }

  void Move(const char* phase, int code) {
    for (auto& [name, pod] : pods_) {
      pod["status"] = {{"phase", phase},
                       {"containerStatuses",
                        {{{"name", "tensorflow"},
                          {"restartCount", 1},
                          {"state", {{"terminated", {{"exitCode", code}}}}}}}}};
    }
  }

 private:
  static void Dump(const Json& json) { json.dump(-1, ' ', false, Json::error_handler_t::replace); }

  void Do(const muster::controller::Action& action, bool allowed) {
    if (const auto* removal = std::get_if<muster::controller::Delete>(&action)) {
      pods_.erase(removal->name);
    }
    const auto* create = std::get_if<muster::controller::Create>(&action);
    if (create == nullptr) return;
    auto spec = muster::controller::TfJob::ReadSpec(job_);
    if (!spec.ok()) std::abort();
    const muster::controller::TfJob job(
        job_, std::make_shared<const muster::job::JobSpec>(*std::move(spec)), options_);
    const auto object = muster::controller::Build(job, *create);
    if (!object.ok()) std::abort();
    if (!allowed || muster::k8s::NameOf(*object) != create->name) std::abort();
    Dump(*object);
    if (create->kind != muster::controller::Kind::kPod) return;
    pods_[create->name] = *object;
    pods_[create->name]["metadata"]["uid"] = "uid-" + create->name;
  }

  Json job_;
  std::map<std::string, Json> pods_;
  const muster::controller::TfJobOptions options_{.trainer_image = "trainer:1",
                                                  .tensorboard_image = "board:1"};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  muster::codec::Diagnostics diagnostics("job.yaml");
  std::vector<Json> objects;
  for (const auto& node : muster::codec::ParseYaml(text, {.bytes = 1 << 16}, diagnostics)) {
    Json object = ToJson(node);
    if (!object.is_object()) return 0;
    GiveMetadata(object, objects.empty() ? "job" : "pod-" + std::to_string(objects.size()));
    objects.push_back(std::move(object));
  }
  if (objects.empty()) return 0;
  Json job = std::move(objects.front());
  objects.erase(objects.begin());
  const auto spec = muster::controller::TfJob::ReadSpec(job);
  if (spec.ok() && spec->Tasks().size() > kMaxTasks) return 0;
  // A job of another manager, or one that is being deleted, is ignored even if it is invalid.
  const bool ignored = !muster::k8s::TextAt(job, "/spec/runPolicy/managedBy").empty() ||
                       muster::k8s::IsBeingDeleted(job);
  const bool fresh = !job.contains("status");
  World world(std::move(job), std::move(objects));
  const bool allowed = world.IsAllowed();
  for (int turn = 0; turn < kRounds; ++turn) {
    const bool failed = world.ReconcileOnce(turn, allowed);
    if (fresh && !ignored && failed == allowed) std::abort();
    world.Move(turn == 0       ? "Running"
               : size % 2 == 0 ? "Failed"
                               : "Succeeded",
               static_cast<int>(size % 256));
  }
  return 0;
}
