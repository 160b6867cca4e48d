#include "controller/rules/cached_object.h"

#include "gtest/gtest.h"

namespace muster::controller {
namespace {

TEST(CachedObjectTest, KeepsTheMembersThatTheRulesRead) {
  Json pod = Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "j-worker-0", "namespace": "n", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "t", "deletionGracePeriodSeconds": 30,
      "labels": {"training.kubeflow.org/operator-name": "tfjob-controller", "training.kubeflow.org/job-name": "j", "team": "a", "muster/role": "worker"},
      "annotations": {"big": "text", "muster/template-hash": "h"}, "managedFields": [1],
      "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "j", "uid": "o", "controller": true}]},
    "spec": {"containers": []},
    "status": {"phase": "Failed", "reason": "Evicted", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "t"}, {"type": "PodScheduled", "status": "True"},
        {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "lastTransitionTime": "t"}], "podIP": "10.0.0.1",
      "containerStatuses": [{"name": "tensorflow", "image": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 3}}}]}})");
  TrimForCache(pod);
  EXPECT_EQ(pod, Json::parse(R"({
    "metadata": {"name": "j-worker-0", "namespace": "n", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "t", "deletionGracePeriodSeconds": 30,
      "labels": {"training.kubeflow.org/operator-name": "tfjob-controller", "training.kubeflow.org/job-name": "j"},
      "annotations": {"muster/template-hash": "h"}, "ownerReferences": [{"uid": "o", "controller": true}]},
    "status": {"phase": "Failed", "reason": "Evicted", "conditions": [{"type": "Ready", "status": "True"}, {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}],
      "containerStatuses": [{"name": "tensorflow", "restartCount": 2, "state": {"terminated": {"exitCode": 3}}}]}})"));
}

TEST(CachedObjectTest, AcceptsMalformedObjects) {
  for (const char* text :
       {"null", "1", "[]", "{}", R"({"metadata": 1, "status": []})",
        R"({"metadata": {"labels": 1, "annotations": [], "ownerReferences": {}}})",
        R"({"metadata": {"ownerReferences": [1]}, "status": {"containerStatuses": [1, []]}})"}) {
    Json object = Json::parse(text);
    TrimForCache(object);
  }
}

}  // namespace
}  // namespace muster::controller
