// muster notebook: prints how to reach the notebook of a job.
#include "manifest/notebook.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/submit.h"
#include "cli/target_options.h"
#include "k8s/error.h"
#include "platform/kubernetes/target.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

struct NotebookCommand {
  std::string job;
  TargetOptions target{.platform = "kubernetes"};
};

// A job with a notebook, and its location.
struct NotebookPlace {
  JobSpec spec;
  KubernetesTarget target;
};

absl::StatusOr<NotebookPlace> FindNotebook(Context& context, const NotebookCommand& command) {
  if (IsFile(context, command.job)) {
    MUSTER_ASSIGN_OR_RETURN(const Submission submission, LoadSubmission(context, command.job));
    return NotebookPlace{
        submission.spec,
        {.context = command.target.kube_context, .ns = command.target.kubernetes_namespace}};
  }
  MUSTER_ASSIGN_OR_RETURN(const JobRecord job, FindJob(context, command.job, command.target));
  if (job.platform != command.target.platform) {
    return absl::FailedPreconditionError(
        absl::StrCat(job.id, " runs on ", job.platform, ", where jobs have no notebooks"));
  }
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  return NotebookPlace{kubernetes::SpecInCluster(submission),
                       TargetOf<KubernetesTarget>(submission)};
}

// Returns the external address of a LoadBalancer service, or "" if it has none.
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

std::vector<std::string> Kubectl(const KubernetesTarget& target) {
  std::vector<std::string> words = {"kubectl", "--namespace", target.ns};
  if (!target.context.empty()) words.insert(words.end(), {"--context", target.context});
  return words;
}

absl::StatusOr<int> ShowNotebook(Context& context, const NotebookCommand& command) {
  if (command.target.platform != "kubernetes") {
    return absl::InvalidArgumentError("notebooks are on Kubernetes only: --on kubernetes");
  }
  MUSTER_ASSIGN_OR_RETURN(NotebookPlace found, FindNotebook(context, command));
  if (found.spec.notebook.is_null()) {
    return absl::FailedPreconditionError(
        "the job file has no 'notebook' section; add `notebook: {password: …}` to it");
  }
  MUSTER_ASSIGN_OR_RETURN(const auto client, kubernetes::Connect(found.target, {}));
  if (found.target.ns.empty()) found.target.ns = found.spec.kubernetes_namespace;
  if (found.target.ns.empty()) found.target.ns = client->ns();
  const std::string name = manifest::NotebookName(found.spec);
  const k8s::ObjectKey key{found.target.ns, name};
  const auto service = client->Get(k8s::kServices, key);
  if (k8s::IsNoSuchObject(service.status())) {
    return absl::NotFoundError(absl::StrCat(
        "there is no service '", name, "' in namespace '", key.ns,
        "': start the job (`muster run --on kubernetes`, or `muster render` and kubectl apply)"));
  }
  MUSTER_RETURN_IF_ERROR(service.status());
  MUSTER_ASSIGN_OR_RETURN(const k8s::Json deployment, client->Get(k8s::kDeployments, key));
  const k8s::Json* ready = k8s::Find(deployment, "/status/readyReplicas");
  Terminal& out = context.out();
  out.PrintLine(absl::StrCat(name, ready == nullptr ? " is starting." : " is ready."));
  std::vector<std::string> kubectl = Kubectl(found.target);
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
  if (found.spec.notebook.value("password", "").empty()) {
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
  AddTargetOptions(command, &options->target);
  command.OnCall([&context, options] { return ShowNotebook(context, *options); });
}

}  // namespace muster::cli
