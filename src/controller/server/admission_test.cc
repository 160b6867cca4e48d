#include "controller/server/admission.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

Json Job(const char* role = "Worker") {
  return {
      {"apiVersion", "kubeflow.org/v1"},
      {"kind", "TFJob"},
      {"metadata", {{"name", "j"}, {"namespace", "n"}}},
      {"spec",
       {{"tfReplicaSpecs",
         {{role,
           {{"template",
             {{"spec",
               {{"containers", Json::array({{{"name", "tensorflow"}, {"image", "i"}}})}}}}}}}}}}}};
}

// Returns the message of a rejection, or "".
std::string Rejection(const char* operation, const Json& job, const Json& before = nullptr) {
  const Json answer =
      Review({{"kind", "AdmissionReview"},
              {"request",
               {{"uid", "u-1"}, {"operation", operation}, {"object", job}, {"oldObject", before}}}},
             {});
  EXPECT_EQ(answer["response"]["uid"], "u-1");
  EXPECT_EQ(answer["apiVersion"], "admission.k8s.io/v1");
  if (answer["response"]["allowed"].get<bool>()) return "";
  return answer["response"]["status"]["message"];
}

TEST(AdmissionTest, NamesAllMistakes) {
  EXPECT_EQ(Rejection("CREATE", Job()), "");
  EXPECT_THAT(Rejection("CREATE", Job("Wroker")), HasSubstr("unknown role 'Wroker'"));
  Json other = Job();
  other["metadata"]["name"] = "0j";
  EXPECT_THAT(Rejection("CREATE", other), HasSubstr("begins with a digit"));
  Json named = Job();
  named["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main";
  EXPECT_THAT(Rejection("CREATE", named), HasSubstr("tensorflow"));
}

TEST(AdmissionTest, WarnsOfFieldsWithoutEffect) {
  const auto warnings = [](const Json& job) {
    const Json review = {{"request", {{"operation", "CREATE"}, {"object", job}}}};
    return Review(review, {})["response"].value("warnings", std::vector<std::string>());
  };
  EXPECT_THAT(warnings(Job()), testing::IsEmpty());
  Json job = Job();
  Json& pod = job["spec"]["tfReplicaSpecs"]["Worker"]["template"];
  pod["spec"]["nodeSelctor"] = Json::object();
  pod["spec"]["containers"][0]["volumemounts"] = Json::array();
  pod["spec"]["restartPolicy"] = "Always";
  pod["metadata"] = {{"labels", Json::object()}};
  const std::string path = "spec.tfReplicaSpecs.Worker.template.spec";
  EXPECT_THAT(
      warnings(job),
      testing::UnorderedElementsAre(
          path + ".nodeSelctor: unknown field 'nodeSelctor' in the template of 'Worker' (did you "
                 "mean 'nodeSelector'?); Kubernetes ignores it",
          HasSubstr(path + ".containers[0].volumemounts: unknown field 'volumemounts'"),
          HasSubstr(path + ".restartPolicy: has no effect")));
  for (int i = 0; i < 1000; ++i) pod["spec"][absl::StrCat("x", i)] = 1;
  EXPECT_THAT(warnings(job), testing::SizeIs(20));
}

TEST(AdmissionTest, TypesInTemplatesAreChecked) {
  const auto rejection = [](const char* path, const Json& value) {
    Json job = Job();
    Json& pod = job["spec"]["tfReplicaSpecs"]["Worker"]["template"];
    pod[Json::json_pointer(path)] = value;
    return Rejection("CREATE", job);
  };
  const std::string at = "spec.tfReplicaSpecs.Worker.template.";
  EXPECT_EQ(rejection("/metadata/annotations", "boom"),
            at + "metadata.annotations: 'annotations' in the template of 'Worker' must be a map, "
                 "not text 'boom'");
  const std::string container = at + "spec.containers[0].";
  EXPECT_EQ(rejection("/spec/containers/0/ports", {{{"name", 8080}, {"containerPort", 1}}}),
            container +
                "ports[0].name: 'name' in the template of 'Worker' must be text, not the "
                "number 8080; put it in quotes");
  EXPECT_EQ(rejection("/spec/containers/0/env", "x"),
            container + "env: 'env' in the template of 'Worker' must be a list, not text 'x'");
  EXPECT_THAT(rejection("/spec/containers/0/env", {nullptr}), HasSubstr("env[0]: "));
  EXPECT_THAT(rejection("/spec/containers", {5}), HasSubstr("containers[0]: "));
  EXPECT_THAT(rejection("/spec/volumes", {{{"name", "v"}, {"emptyDir", 1}}}),
              HasSubstr(at + "spec.volumes[0].emptyDir: "));
  EXPECT_THAT(rejection("/spec/nodeSelector", {{"disk", 5}}),
              HasSubstr(at + "spec.nodeSelector.disk: "));
  EXPECT_THAT(rejection("/spec/containers/0/livenessProbe", {{"httpGet", {{"port", true}}}}),
              HasSubstr(container + "livenessProbe.httpGet.port: "));
  EXPECT_EQ(rejection("/spec/containers/0/livenessProbe", {{"httpGet", {{"port", "http"}}}}), "");
  EXPECT_EQ(rejection("/metadata/creationTimestamp", nullptr), "");
}

TEST(AdmissionTest, ManagedByIsImmutable) {
  Json managed = Job();
  managed["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  EXPECT_THAT(Rejection("UPDATE", managed, Job()), HasSubstr("managedBy cannot be changed"));
  EXPECT_EQ(Rejection("UPDATE", managed, managed), "");
}

TEST(AdmissionTest, AnExistingInvalidJobCanBeLabelledAndDeleted) {
  const Json wrong = Job("Wroker");
  EXPECT_EQ(Rejection("UPDATE", wrong, wrong), "");
  Json noted = wrong;  // with the operator's annotation
  noted["metadata"]["annotations"]["muster/status"] = "{}";
  EXPECT_EQ(Rejection("UPDATE", noted, wrong), "");
  Json going = Job("Wroker");
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(Rejection("UPDATE", going, Job()), "");
  EXPECT_EQ(Rejection("DELETE", nullptr, wrong), "");
}

TEST(AdmissionTest, PoliciesInAnnotationsAreChecked) {
  Json changed = Job();
  changed["metadata"]["annotations"] = {{"muster/update", "sometimes"}};
  EXPECT_THAT(Rejection("UPDATE", changed, Job()), HasSubstr("recreate | rolling | never"));
  EXPECT_EQ(Rejection("UPDATE", changed, changed), "");
}

TEST(AdmissionTest, AnswersMalformedReviews) {
  for (const Json& review : {Json(), Json(1), Json::array(), Json{{"request", 1}}}) {
    EXPECT_EQ(Review(review, {})["response"]["allowed"], true);  // no operation to deny
  }
}

}  // namespace
}  // namespace muster::controller
