// muster operator install: installs or upgrades the operator in a cluster.
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cli/cluster/cluster.h"
#include "cli/cluster/operator_manifests.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "codec/yaml_writer.h"
#include "jobs/start/images.h"
#include "k8s/client.h"
#include "k8s/error.h"
#include "manifest/images.h"

namespace muster::cli {
namespace {

using k8s::Client;
using k8s::Json;

struct InstallCommand {
  InstallOptions options;
  std::string context;
  std::string image_repository;
  bool no_webhook = false;
  bool definitions_only = false;
  bool dry_run = false;
  bool force = false;
};

bool HasWebhook(const InstallCommand& command) {
  return !command.no_webhook && !command.options.namespaced && !command.definitions_only;
}

absl::StatusOr<std::vector<Json>> Manifests(const InstallCommand& command,
                                            std::optional<WebhookCertificate> certificate) {
  if (command.definitions_only) return JobDefinitions();
  InstallOptions options = command.options;
  // Validates the namespace before a certificate is issued for it.
  MUSTER_RETURN_IF_ERROR(OperatorManifests(options).status());
  if (HasWebhook(command)) {
    options.webhook = std::move(certificate);
    if (!options.webhook) {
      MUSTER_ASSIGN_OR_RETURN(options.webhook, MakeWebhookCertificate(options.ns, absl::Now()));
    }
  }
  return OperatorManifests(options);
}

// Returns the certificate of an earlier installation, or nullopt. Reusing it makes a second
// installation idempotent.
absl::StatusOr<std::optional<WebhookCertificate>> ExistingCertificate(Client& client,
                                                                      const std::string& ns) {
  const auto secret = client.Get(k8s::kSecrets, {.ns = ns, .name = kWebhookSecret});
  if (k8s::IsNoSuchObject(secret.status())) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(secret.status());
  return ReadWebhookCertificate(*secret, ns, absl::Now());
}

// Applies an object. Returns the outcome as kubectl does: created, configured or unchanged.
absl::StatusOr<std::string> Apply(Client& client, const Json& object, bool force) {
  const k8s::ResourceKind* kind =
      k8s::FindKind(k8s::TextAt(object, "/apiVersion"), k8s::TextAt(object, "/kind"));
  if (kind == nullptr) return absl::InternalError("unknown kind in a manifest");
  const auto before = client.Get(*kind, k8s::KeyOf(object));
  if (!before.ok() && !k8s::IsNoSuchObject(before.status())) return before.status();
  const auto after = client.Apply(*kind, object, force);
  if (k8s::IsConflict(after.status())) {
    return absl::AbortedError(absl::StrCat(
        after.status().message(),
        "; another program owns these fields, possibly another TFJob operator: remove it, or take "
        "over the object with --force"));
  }
  MUSTER_RETURN_IF_ERROR(after.status());
  if (!before.ok()) return "created";
  return k8s::ResourceVersionOf(*before) == k8s::ResourceVersionOf(*after) ? "unchanged"
                                                                           : "configured";
}

// Deletes the webhook objects of an earlier installation, if any.
absl::Status RemoveWebhook(Context& context, Client& client, const std::string& ns) {
  const std::pair<const k8s::ResourceKind*, k8s::ObjectKey> objects[] = {
      {&k8s::kValidatingWebhooks, {.name = kWebhookConfiguration}},
      {&k8s::kSecrets, {.ns = ns, .name = kWebhookSecret}}};
  for (const auto& [kind, key] : objects) {
    const absl::Status done = client.Delete(*kind, key);
    if (k8s::IsNoSuchObject(done)) continue;
    MUSTER_RETURN_IF_ERROR(done);
    context.out().PrintLine(
        absl::StrCat(absl::AsciiStrToLower(kind->kind), "/", key.name, " deleted"));
  }
  return absl::OkStatus();
}

// Returns FailedPrecondition if the cluster has no TFJob definition. A namespaced operator cannot
// install it, because definitions are cluster-scoped.
absl::Status CheckDefinitions(Client& client) {
  const auto served = client.GetPath("/apis/kubeflow.org/v1");
  if (!k8s::IsNoSuchObject(served.status()) && !k8s::IsUnknownResource(served.status())) {
    return served.status();
  }
  return absl::FailedPreconditionError(
      "the cluster has no TFJob definition; an administrator installs it with `muster operator "
      "install --definitions-only`");
}

// Sets the images of the installation to those in the repository, if one is given. Returns them.
absl::StatusOr<std::vector<platform::Image>> UseRepository(InstallCommand& command) {
  if (command.image_repository.empty() || command.definitions_only) {
    return std::vector<platform::Image>();
  }
  MUSTER_RETURN_IF_ERROR(platform::CheckRepository(command.image_repository));
  std::vector<platform::Image> images = {
      platform::OperatorImage(command.image_repository, MUSTER_VERSION)};
  command.options.image = images.back().Reference();
  if (command.options.trainer_image == manifest::TrainerImage(MUSTER_VERSION)) {
    images.push_back(platform::TrainerImage(command.image_repository, MUSTER_VERSION));
    command.options.trainer_image = images.back().Reference();
  }
  return images;
}

absl::StatusOr<int> Install(Context& context, InstallCommand command) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<platform::Image> images, UseRepository(command));
  if (command.dry_run) {
    MUSTER_ASSIGN_OR_RETURN(const auto absent, jobs::AbsentImages(context.jobs(), images));
    for (const platform::Image& image : absent) {
      context.err().Note(absl::StrCat("would push ", image.Reference()));
    }
    MUSTER_ASSIGN_OR_RETURN(const auto objects, Manifests(command, std::nullopt));
    const std::vector<nlohmann::ordered_json> documents(objects.begin(), objects.end());
    context.out().PrintData(codec::ToYamlDocuments(documents));
    return kSuccess;
  }
  MUSTER_RETURN_IF_ERROR(OperatorManifests(command.options).status());
  MUSTER_ASSIGN_OR_RETURN(const auto client, ConnectToCluster(context, command.context));
  std::optional<WebhookCertificate> certificate;
  if (HasWebhook(command)) {
    MUSTER_ASSIGN_OR_RETURN(certificate, ExistingCertificate(*client, command.options.ns));
  }
  if (command.options.namespaced) MUSTER_RETURN_IF_ERROR(CheckDefinitions(*client));
  MUSTER_ASSIGN_OR_RETURN(const auto objects, Manifests(command, std::move(certificate)));
  MUSTER_RETURN_IF_ERROR(jobs::PushImages(context.jobs(), images));
  for (const Json& object : objects) {
    MUSTER_ASSIGN_OR_RETURN(const std::string done, Apply(*client, object, command.force));
    context.out().PrintLine(absl::StrCat(absl::AsciiStrToLower(k8s::TextAt(object, "/kind")), "/",
                                         k8s::NameOf(object), " ", done));
  }
  if (command.definitions_only) return kSuccess;
  if (command.no_webhook && !command.options.namespaced) {
    MUSTER_RETURN_IF_ERROR(RemoveWebhook(context, *client, command.options.ns));
  }
  context.err().Note(
      absl::StrCat("kubectl -n ", command.options.ns,
                   " rollout status deployment/muster-operator shows when it is up"));
  return kSuccess;
}

}  // namespace

void AddOperatorInstallCommand(Command& command, Context& context) {
  Command& sub = command.AddCommand(
      "install", "Install the operator in a cluster, or upgrade it to this version");
  auto install = std::make_shared<InstallCommand>();
  install->options = {.ns = "muster",
                      .image = absl::StrCat("muster:", MUSTER_VERSION),
                      .trainer_image = manifest::TrainerImage(MUSTER_VERSION)};
  sub.Option("-n,--namespace", &install->options.ns, "The operator's namespace");
  sub.Option("--image", &install->options.image, "The image of muster");
  sub.Option("--trainer-image", &install->options.trainer_image,
             "The image of the built-in trainer, which the operator uses");
  sub.Option("--image-repository", &install->image_repository,
             "A repository for both images, such as registry.example.com/ml: they are pushed, "
             "unless they are there, and used");
  sub.Exclude("--image-repository", "--image");
  sub.Option("--gang-scheduler", &install->options.gang_scheduler,
             "Gang scheduler for the pods of a job: none, volcano or scheduler-plugins");
  sub.Option("--context", &install->context, "The context of the kubeconfig");
  sub.Flag("--namespaced", &install->options.namespaced,
           "Run only jobs of its own namespace: with a Role, without a webhook");
  sub.Flag("--definitions-only", &install->definitions_only,
           "Install only the TFJob definitions, which --namespaced requires");
  sub.Flag("--no-webhook", &install->no_webhook, "Omit the webhook that rejects invalid jobs");
  sub.Flag("--force", &install->force, "Take over fields that another program has set");
  sub.Flag("--dry-run", &install->dry_run, "Print the manifests, for kubectl apply");
  sub.OnCall([&context, install] { return Install(context, *install); });
}

}  // namespace muster::cli
