// muster notebook: how to reach the notebook beside a job.
#include "launch/kubernetes/notebook.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/place_options.h"
#include "cli/submit.h"
#include "k8s/error.h"
#include "launch/job_dir.h"
#include "launch/kubernetes/place.h"

namespace muster::cli {
namespace {

struct NotebookCommand {
  std::string job;
  PlaceOptions place{.platform = "kubernetes"};
};

// The notebook of a job, and where it is.
struct Target {
  JobSpec spec;
  kubernetes::Place place;
};

absl::StatusOr<Target> FindTarget(Context& context, const NotebookCommand& command) {
  if (IsFile(context, command.job)) {
    MUSTER_ASSIGN_OR_RETURN(const Submission submission, LoadSubmission(context, command.job));
    return Target{
        submission.spec,
        {.context = command.place.kube_context, .name_space = command.place.kubernetes_namespace}};
  }
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job, FindJob(context, command.job, command.place));
  if (job.platform != command.place.platform) {
    return absl::FailedPreconditionError(
        absl::StrCat(job.id, " runs on ", job.platform, ", where jobs have no notebooks"));
  }
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  return Target{kubernetes::SpecInCluster(submission), kubernetes::Place::Of(submission)};
}

// Where a load balancer has put a service; "" when it is in the cluster only.
std::string AddressOf(const k8s::Json& service) {
  const std::string ip = k8s::TextAt(service, "/status/loadBalancer/ingress/0/ip");
  return ip.empty() ? k8s::TextAt(service, "/status/loadBalancer/ingress/0/hostname") : ip;
}

void PrintPorts(Terminal& out, const k8s::Json& service, const std::string& host) {
  for (const k8s::Json& port : service["spec"]["ports"]) {
    const bool board = k8s::TextAt(port, "/name") == "tensorboard";
    out.PrintLine(absl::StrCat("  ", board ? "TensorBoard" : "notebook", "  http://", host, ":",
                               port.value("port", 0)));
  }
}

std::vector<std::string> Kubectl(const kubernetes::Place& place) {
  std::vector<std::string> words = {"kubectl", "--namespace", place.name_space};
  if (!place.context.empty()) words.insert(words.end(), {"--context", place.context});
  return words;
}

absl::StatusOr<int> ShowNotebook(Context& context, const NotebookCommand& command) {
  if (command.place.platform != "kubernetes") {
    return absl::InvalidArgumentError("notebooks are on Kubernetes only: --on kubernetes");
  }
  MUSTER_ASSIGN_OR_RETURN(Target target, FindTarget(context, command));
  if (target.spec.notebook.is_null()) {
    return absl::FailedPreconditionError(
        "the job file has no 'notebook' section; add `notebook: {password: …}` to it");
  }
  MUSTER_ASSIGN_OR_RETURN(const auto client, kubernetes::Connect(target.place, {}));
  if (target.place.name_space.empty()) target.place.name_space = target.spec.kubernetes_namespace;
  if (target.place.name_space.empty()) target.place.name_space = client->name_space();
  const std::string name = kubernetes::NotebookName(target.spec);
  const k8s::ObjectKey key{target.place.name_space, name};
  const auto service = client->Get(k8s::kServices, key);
  if (k8s::IsNoSuchObject(service.status())) {
    return absl::NotFoundError(absl::StrCat(
        "there is no service '", name, "' in namespace '", key.name_space,
        "': start the job (`muster run --on kubernetes`, or `muster render` and kubectl apply)"));
  }
  MUSTER_RETURN_IF_ERROR(service.status());
  MUSTER_ASSIGN_OR_RETURN(const k8s::Json deployment, client->Get(k8s::kDeployments, key));
  const k8s::Json* ready = k8s::Find(deployment, "/status/readyReplicas");
  Terminal& out = context.out();
  out.PrintLine(absl::StrCat(name, ready == nullptr ? " is starting." : " is ready."));
  std::vector<std::string> kubectl = Kubectl(target.place);
  if (const std::string address = AddressOf(*service); !address.empty()) {
    PrintPorts(out, *service, address);
  } else {
    std::vector<std::string> forward = kubectl;
    forward.insert(forward.end(), {"port-forward", absl::StrCat("service/", name)});
    for (const k8s::Json& port : (*service)["spec"]["ports"]) {
      forward.push_back(absl::StrCat(port.value("port", 0)));
    }
    out.PrintLine(
        absl::StrCat("To reach it from this machine, run\n  ", ShellJoin(forward), "\nand open"));
    PrintPorts(out, *service, "localhost");
  }
  if (target.spec.notebook.value("password", "").empty()) {
    kubectl.insert(kubectl.end(), {"logs", absl::StrCat("deployment/", name), "notebook"});
    out.PrintLine(
        absl::StrCat("It has no password; its log holds the token:\n  ", ShellJoin(kubectl)));
  } else {
    out.PrintLine("The password is the job file's.");
  }
  return kSuccess;
}

}  // namespace

void AddNotebookCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("notebook", "Tell how to reach the notebook of a job");
  auto options = std::make_shared<NotebookCommand>();
  command.Argument("JOB", &options->job, "A job, or the job file", Presence::kRequired);
  AddPlaceOptions(command, &options->place);
  command.OnCall([&context, options] { return ShowNotebook(context, *options); });
}

}  // namespace muster::cli
