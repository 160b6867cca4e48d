// muster render: prints a job as manifests for kubectl.
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/cluster.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/submit.h"
#include "codec/yaml_writer.h"
#include "manifest/manifests.h"

namespace muster::cli {
namespace {

struct RenderCommand {
  std::string job;
  std::string output;
  manifest::RenderOptions options;
};

std::string RandomSalt() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

absl::StatusOr<int> Render(Context& context, const RenderCommand& command) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, LoadSubmission(context, command.job));
  manifest::RenderOptions options = command.options;
  options.salt = RandomSalt();
  MUSTER_ASSIGN_OR_RETURN(options.tls, MakeJobTls(submission.spec.name));
  MUSTER_ASSIGN_OR_RETURN(const auto objects, manifest::RenderJob(submission.spec, options));
  const std::string text = codec::ToYamlDocuments(objects);
  if (command.output.empty() || command.output == "-") {
    context.out().PrintData(text);
    return kSuccess;
  }
  // Private mode: the file contains the job's TLS key and the hash of the notebook's password.
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(command.output, text, 0600));
  context.err().Note(absl::StrCat("wrote ", Plural(static_cast<int64_t>(objects.size()), "object"),
                                  "; kubectl apply -f ", command.output));
  return kSuccess;
}

}  // namespace

void AddRenderCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("render", "Print a job as Kubernetes manifests, for kubectl apply");
  auto render = std::make_shared<RenderCommand>();
  render->options.trainer_image = TrainerImage();
  render->options.notebook_image = kNotebookImage;
  command.Argument("JOB", &render->job, "A job file", Presence::kRequired);
  command.Option("-o,--output", &render->output, "The file to write; else standard output");
  command.Option("-n,--namespace", &render->options.kubernetes_namespace,
                 "The namespace (default: the job's, else default)");
  command.Flag("--create-namespace", &render->options.create_namespace, "Make it, too");
  command.Option("--domain", &render->options.domain, "The cluster's domain");
  command.Option("--trainer-image", &render->options.trainer_image,
                 "The image of the built-in trainer");
  command.Option("--notebook-image", &render->options.notebook_image,
                 "An image with Jupyter and TensorBoard");
  command.OnCall([&context, render] { return Render(context, *render); });
}

}  // namespace muster::cli
