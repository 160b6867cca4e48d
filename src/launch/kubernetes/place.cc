#include "launch/kubernetes/place.h"

#include "base/variables.h"
#include "launch/kubernetes/names.h"

namespace muster::kubernetes {

Place Place::Of(const Submission& submission) {
  Place place;
  if (!submission.place.is_object()) return place;
  place.kubeconfig = submission.place.value("kubeconfig", "");
  place.context = submission.place.value("context", "");
  place.name_space = submission.place.value("namespace", "");
  place.trainer_image = submission.place.value("trainer_image", "");
  place.job = submission.place.value("job", "");
  place.uid = submission.place.value("uid", "");
  return place;
}

nlohmann::json Place::ToJson() const {
  return {{"kubeconfig", kubeconfig},       {"context", context}, {"namespace", name_space},
          {"trainer_image", trainer_image}, {"job", job},         {"uid", uid}};
}

absl::StatusOr<std::unique_ptr<k8s::Client>> Connect(const Place& place,
                                                     k8s::ClientOptions options) {
  const Variables process = ProcessVariables();
  const Variables variables = [&](const std::string& name) {
    return name == "KUBECONFIG" && !place.kubeconfig.empty() ? place.kubeconfig : process(name);
  };
  auto config = k8s::FindCluster(variables, place.context);
  if (!config.ok()) return config.status();
  options.http = net::HttpOptions::FromEnvironment();
  return k8s::Client::Create(*std::move(config), std::move(options));
}

k8s::ObjectKey KeyOf(const Submission& submission) {
  const Place place = Place::Of(submission);
  return {place.name_space, place.job.empty() ? submission.id : place.job};
}

JobSpec SpecInCluster(const Submission& submission) {
  JobSpec spec = submission.spec;
  spec.name = KeyOf(submission).name;
  if (!submission.resumed_from.empty()) spec.env["MUSTER_RESUME"] = "1";
  if (submission.resume_step) {
    spec.env["MUSTER_RESUME_STEP"] = std::to_string(*submission.resume_step);
  }
  return spec;
}

ClusterSpec AddressesOf(const Submission& submission) {
  return Addresses(SpecInCluster(submission), Place::Of(submission).name_space, "");
}

}  // namespace muster::kubernetes
