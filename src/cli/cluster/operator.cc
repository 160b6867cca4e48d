// muster operator: runs TFJobs in a Kubernetes cluster.
#include "controller/operator.h"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/cluster/cluster.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "controller/rules/gang.h"
#include "controller/server/endpoints.h"
#include "k8s/leader_elector.h"
#include "manifest/images.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

constexpr double kRequestsPerSecond = 1000;
constexpr double kEventsPerSecond = 10;
constexpr double kLeaseRequestsPerSecond = 5;

struct OperatorCommand {
  std::string context;
  std::string ns;        // of the jobs; "" = all
  std::string lease_ns;  // "" = the client's
  bool no_leader_election = false;
  controller::TfJobOptions job;
  std::string gang_scheduler = "none";
  std::string lost_after = "1m";
  int http_port = 0;
  int webhook_port = 9443;
  std::string webhook_certificate;
};

// Returns a unique identity for the leader election: the host name and random digits.
std::string Identity() {
  char host[256] = "muster";
  ::gethostname(host, sizeof(host) - 1);
  std::random_device random;
  return absl::StrCat(host, "_", absl::StrFormat("%08x%08x", random(), random()));
}

// Returns the folder of the webhook's certificate, or "" if it holds none.
std::string WebhookFolder(Context& context, const OperatorCommand& command) {
  if (command.webhook_certificate.empty()) return "";
  std::error_code error;
  if (std::filesystem::exists(base::JoinPath(command.webhook_certificate, "tls.crt"), error)) {
    return command.webhook_certificate;
  }
  context.err().Note(absl::StrCat("no certificate in ", command.webhook_certificate,
                                  ": the validating webhook is disabled"));
  return "";
}

absl::StatusOr<controller::TfJobOptions> JobOptions(const OperatorCommand& command) {
  controller::TfJobOptions options = command.job;
  MUSTER_ASSIGN_OR_RETURN(options.gang, controller::GangSchedulerFromName(command.gang_scheduler));
  return options;
}

absl::StatusOr<std::unique_ptr<k8s::Client>> Connect(
    Context& context, const std::string& kube_context, double requests_per_second,
    const std::function<void(const std::string&)>& log) {
  return ConnectToCluster(context, kube_context,
                          {.requests_per_second = requests_per_second,
                           .burst = static_cast<int>(2 * requests_per_second),
                           .field_manager = "muster-operator",
                           .on_warning = log});
}

// Runs `work` on a thread once this process holds the lease, and keeps the lease until `work` has
// returned: another leader must not start before that. Requests `stop` when either ends.
absl::Status Lead(k8s::LeaderElector& elector, std::stop_source& stop,
                  const std::function<absl::Status()>& work) {
  std::jthread thread;
  absl::Status worked;
  std::atomic<bool> idle = true;
  const absl::Status led = elector.Run(
      stop.get_token(),
      [&] {
        idle = false;
        thread = std::jthread([&] {
          worked = work();
          idle = true;
          stop.request_stop();
        });
      },
      [&] { return idle.load(); });
  stop.request_stop();
  if (thread.joinable()) thread.join();
  MUSTER_RETURN_IF_ERROR(worked);
  return led;
}

absl::StatusOr<int> RunOperator(Context& context, const OperatorCommand& command) {
  ::mallopt(M_ARENA_MAX, 2);  // many mostly idle threads: few arenas keep memory usage low
  MUSTER_ASSIGN_OR_RETURN(const controller::TfJobOptions job, JobOptions(command));
  const process::HeldSignals signals;  // before the first thread: all threads inherit the mask
  absl::Mutex mutex;
  const auto log = [&](const std::string& text) {
    absl::MutexLock lock(&mutex);  // called by many threads
    context.err().Note(text);
    context.err().Flush();
  };
  const auto connect = [&](double requests_per_second) {
    return Connect(context, command.context, requests_per_second, log);
  };
  // Separate clients have separate rate limits: neither a burst of requests nor of events can delay
  // the renewal of the lease.
  MUSTER_ASSIGN_OR_RETURN(const auto client, connect(kRequestsPerSecond));
  MUSTER_ASSIGN_OR_RETURN(const auto events, connect(kEventsPerSecond));
  MUSTER_ASSIGN_OR_RETURN(const auto leases, connect(kLeaseRequestsPerSecond));
  controller::Operator controller(
      *client, {.ns = command.ns, .job = job, .events = events.get(), .log = log});
  std::stop_source stop;
  std::jthread watch([&](const std::stop_token& over) {
    while (!over.stop_requested() && !signals.Take()) absl::SleepFor(absl::Milliseconds(50));
    stop.request_stop();
  });
  std::atomic<bool> leading = command.no_leader_election;
  MUSTER_ASSIGN_OR_RETURN(
      const auto endpoints,
      controller::Endpoints::Start(
          {.http_port = command.http_port,
           .webhook_port = command.webhook_port,
           .certificate_folder = WebhookFolder(context, command),
           .log = log,
           // An instance that waits for the lease is ready too: it serves the webhook.
           .ready = [&] { return !leading || controller.IsReady(); },
           .metrics = [&] { return controller::Metrics(controller.Counts(), leading); },
           .job = job}));
  if (command.no_leader_election) {
    MUSTER_RETURN_IF_ERROR(controller.Run(stop.get_token()));
    return kSuccess;
  }
  const std::string& home = command.lease_ns.empty() ? client->ns() : command.lease_ns;
  k8s::LeaderElector elector(
      *leases, {.lease = {home, "muster-operator"}, .identity = Identity(), .on_error = log});
  MUSTER_RETURN_IF_ERROR(Lead(elector, stop, [&] {
    log("leading");
    leading = true;
    return controller.Run(stop.get_token());
  }));
  return kSuccess;
}

}  // namespace

void AddOperatorCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("operator", "Run TFJobs in a Kubernetes cluster");
  auto options = std::make_shared<OperatorCommand>();
  options->job.trainer_image = manifest::TrainerImage(MUSTER_VERSION);
  options->job.tensorboard_image = manifest::kNotebookImage;
  AddOperatorInstallCommand(command, context);
  command.Option("--context", &options->context, "The context of the kubeconfig file");
  command.Option("-n,--namespace", &options->ns, "The namespace whose jobs it runs (default: all)");
  command.Option("--lease-namespace", &options->lease_ns,
                 "The namespace of the leader election's lease (default: its own)");
  command.Flag("--no-leader-election", &options->no_leader_election, "Run without a lease");
  command.Option("--domain", &options->job.domain,
                 "The cluster's domain, for pods that need it in addresses");
  command.Option("--trainer-image", &options->job.trainer_image,
                 "The image of the built-in trainer");
  command.Option("--tensorboard-image", &options->job.tensorboard_image,
                 "The TensorBoard image for TfJobs that do not set one");
  command.Option("--gang-scheduler", &options->gang_scheduler,
                 "Gang scheduler for the pods of a job: none, volcano or scheduler-plugins");
  command.Option("--gang-scheduler-name", &options->job.gang_scheduler_name,
                 "The name of the gang scheduler in the cluster (default: its usual one)");
  command.Option(
      "--lost-pods-after", &options->lost_after,
      "Replace a pod that is still terminating this long after its grace period: 30s, 5m");
  command.Option("--http-port", &options->http_port,
                 "Serve /healthz, /readyz and /metrics on this port (default: off)");
  command.Option("--webhook-certificate", &options->webhook_certificate,
                 "A folder with tls.crt and tls.key: serve the validating webhook");
  command.Option("--webhook-port", &options->webhook_port, "The port of the webhook");
  command.OnCall([&context, options]() -> absl::StatusOr<int> {
    MUSTER_ASSIGN_OR_RETURN(options->job.lost_after, base::ParseDuration(options->lost_after));
    return RunOperator(context, *options);
  });
}

}  // namespace muster::cli
