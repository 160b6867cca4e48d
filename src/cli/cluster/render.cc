// muster render: prints a job as manifests for kubectl.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/job_file.h"
#include "codec/yaml_writer.h"
#include "manifest/images.h"
#include "manifest/manifests.h"
#include "manifest/notebook.h"
#include "worktree/command_files.h"

namespace muster::cli {
namespace {

struct RenderCommand {
  std::string job;
  std::string config;  // another spelling of `job`
  std::string output;
  job::Overrides overrides;
  manifest::RenderOptions options;
};

absl::StatusOr<std::string> JobFileOf(const RenderCommand& command) {
  if (command.job.empty() == command.config.empty()) {
    return absl::InvalidArgumentError(command.job.empty()
                                          ? "missing job file; usage: muster render FILE"
                                          : "FILE and --config are the same option; pass one");
  }
  return command.job.empty() ? command.config : command.job;
}

// Reports the files of the working directory that commands name: a manifest does not contain them.
void NoteFiles(Terminal& err, const job::Submission& submission) {
  for (const job::RoleSpec& role : submission.spec.roles) {
    const auto named = worktree::FilesNamedBy(role, submission.working_dir);
    if (named.empty()) continue;
    err.Note(absl::StrCat("role '", role.name, "': ", base::Printable(absl::StrJoin(named, ", ")),
                          ": the manifest does not contain the files of this directory, so the ",
                          "image must",
                          submission.spec.format == job::JobFormat::kNative
                              ? "; `muster run --on kubernetes` sends them"
                              : ""));
  }
}

absl::StatusOr<int> Render(Context& context, const RenderCommand& command) {
  MUSTER_ASSIGN_OR_RETURN(const std::string file, JobFileOf(command));
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          LoadJobFile(context, file, command.overrides));
  manifest::RenderOptions options = command.options;
  options.salt = manifest::RandomSalt();
  MUSTER_ASSIGN_OR_RETURN(options.tls, job::MakeJobTls(submission.spec.name));
  MUSTER_ASSIGN_OR_RETURN(const auto objects, manifest::RenderJob(submission.spec, options));
  for (const std::string& limit : manifest::RenderLimits(submission.spec)) {
    context.err().Note(absl::StrCat("not without the operator: ", limit));
  }
  NoteFiles(context.err(), submission);
  const std::string text = codec::ToYamlDocuments(objects);
  if (command.output.empty() || command.output == "-") {
    context.out().PrintData(text);
    return kSuccess;
  }
  // Private mode: the file contains the job's TLS key and the hash of the notebook's password.
  MUSTER_RETURN_IF_ERROR(base::WriteFileAtomically(command.output, text, 0600));
  context.err().Note(absl::StrCat("wrote ",
                                  base::Plural(static_cast<int64_t>(objects.size()), "object"),
                                  "; kubectl apply -f ", command.output));
  return kSuccess;
}

}  // namespace

void AddRenderCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("render", "Print a job as Kubernetes manifests, for kubectl apply");
  auto render = std::make_shared<RenderCommand>();
  render->options.trainer_image = manifest::TrainerImage(MUSTER_VERSION);
  render->options.notebook_image = manifest::kNotebookImage;
  command.Argument("FILE", &render->job, "A job file");
  command.Option("-c,--config", &render->config, "The job file, instead of FILE");
  AddOverrideOptions(command, &render->overrides);
  command.Option("-o,--output,--out", &render->output,
                 "The file to write (default: standard output)");
  command.Option("-n,--namespace", &render->options.kubernetes_namespace,
                 "The namespace (default: the job's, else default)");
  command.Flag("--create-namespace", &render->options.create_namespace,
               "Also create the namespace");
  command.Option("--domain", &render->options.domain, "The cluster's domain");
  command.Option("--trainer-image", &render->options.trainer_image,
                 "The image of the built-in trainer");
  command.Option("--notebook-image", &render->options.notebook_image,
                 "An image with Jupyter and TensorBoard");
  command.OnCall([&context, render] { return Render(context, *render); });
}

}  // namespace muster::cli
