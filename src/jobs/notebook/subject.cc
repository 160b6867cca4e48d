#include "jobs/notebook/subject.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "cluster/tf_config.h"
#include "jobs/notebook/jupyter.h"
#include "jobs/notebook/ready_notebook.h"
#include "jobs/start/launch_by_hand.h"
#include "nlohmann/json.hpp"
#include "process/spawn.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

// Variables that must not reach Jupyter and its kernels: secrets, and those that mark a task.
constexpr const char* kDropped[] = {"MUSTER_NOTEBOOK_PASSWORD",
                                    "JUPYTER_TOKEN",
                                    "JUPYTER_TOKEN_FILE",
                                    "MUSTER_JOB_ID",
                                    "MUSTER_TASK",
                                    "MUSTER_ROLE",
                                    "MUSTER_INDEX",
                                    "MUSTER_ATTEMPT",
                                    "MUSTER_METRICS_FILE",
                                    "MUSTER_PROGRESS_FILE",
                                    "TF_CONFIG",
                                    "CLUSTER_CONFIG"};

void AddCluster(const JobCluster& job, std::map<std::string, std::string>& env) {
  const cluster::ClusterSpec members = job.cluster.Without("evaluator");
  cluster::ClusterSpec known;
  for (const auto& [role, addresses] : members.roles()) {
    for (const auto& [index, address] : addresses) {
      if (!address.empty()) known.Set({role, index}, address);
    }
  }
  if (known.empty()) return;
  const std::string config =
      cluster::WriteTfConfig({.cluster = known,
                              .model_dir = job.submission.spec.model_dir,
                              .environment = job.cluster.size() > 1 ? "cloud" : "local"});
  env["TF_CONFIG"] = config;
  env["CLUSTER_CONFIG"] = nlohmann::ordered_json::parse(config)["cluster"].dump();
}

NotebookSubject MakeSubject(Service& service, const JobCluster& job, std::string name,
                            NotebookFolder folder) {
  const job::JobSpec& spec = job.submission.spec;
  NotebookSubject subject{.job = std::move(name), .folder = std::move(folder)};
  subject.env = spec.env;
  AddCluster(job, subject.env);
  if (!spec.model_dir.empty()) subject.env["MUSTER_MODEL_DIR"] = spec.model_dir;
  subject.env["MUSTER_JOB_NAME"] = spec.name;
  subject.env["MUSTER_NOTEBOOK_JOB"] = subject.job;
  subject.env["MUSTER_HOME"] = service.home();
  if (const auto muster = service.FindProgram("muster"); muster.ok()) {
    subject.env["MUSTER_PROGRAM"] = *muster;
  }
  subject.working_dir = job.submission.working_dir;
  if (spec.notebook.is_object()) {
    subject.password = spec.notebook.value("password", "");
    subject.port = spec.notebook.value("port", 0);
  }
  return subject;
}

// A link to the folder of the job's programs, beside the ready notebook. Without it the notebook
// works as well.
void LinkWorkingDir(const NotebookSubject& subject) {
  if (subject.working_dir.empty()) return;
  const std::string link = base::JoinPath(subject.folder.files(), "working_dir");
  std::error_code ignored;
  if (std::filesystem::is_symlink(link, ignored)) std::filesystem::remove(link, ignored);
  std::filesystem::create_directory_symlink(subject.working_dir, link, ignored);
}

}  // namespace

absl::StatusOr<NotebookSubject> SubjectOf(Service& service, const job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(const JobCluster cluster, ClusterOf(service, job));
  NotebookSubject subject =
      MakeSubject(service, cluster, job.id, NotebookFolder::OfJob(job.directory));
  subject.env["MUSTER_JOB_DIR"] = job.directory;
  // {job_id} in the file is replaced by now.
  if (!job.model_dir.empty()) subject.env["MUSTER_MODEL_DIR"] = job.model_dir;
  return subject;
}

absl::StatusOr<NotebookSubject> SubjectOfFile(Service& service, job::Submission submission) {
  // Files of the same name in different folders have different notebooks.
  const std::string file = base::AbsolutePath(submission.source_name, submission.working_dir);
  const std::string name = submission.spec.name;
  const std::string folder = base::JoinPath(
      service.home(), absl::StrCat("notebooks/", name, "-", base::Sha256Hex(file).substr(0, 8)));
  JobCluster job{.submission = submission};
  auto cluster = ClusterBeforeStart(service, std::move(submission));
  if (cluster.ok()) {
    job = *std::move(cluster);
  } else if (absl::IsFailedPrecondition(cluster.status())) {
    service.Notify(absl::StrCat("the notebook has no TF_CONFIG: ", cluster.status().message()));
  } else {
    return cluster.status();
  }
  return MakeSubject(service, job, name, NotebookFolder(folder));
}

absl::StatusOr<PreparedNotebook> PrepareNotebook(const NotebookSubject& subject,
                                                 const NotebookOptions& options) {
  PreparedNotebook prepared;
  prepared.env = process::CurrentEnvironment();
  for (const char* name : kDropped) prepared.env.erase(name);
  for (const auto& [name, value] : subject.env) prepared.env[name] = value;
  const NotebookFolder& folder = subject.folder;
  prepared.env["JUPYTER_RUNTIME_DIR"] = folder.runtime();
  MUSTER_ASSIGN_OR_RETURN(
      const Jupyter jupyter,
      FindJupyter(options.jupyter, process::CurrentEnvironment(), options.jupyter_folder));
  MUSTER_RETURN_IF_ERROR(
      base::ReplaceFile(folder.config(), JupyterConfig({.password_hash = options.password_hash,
                                                        .root = folder.files(),
                                                        .as_root = ::geteuid() == 0})));
  MUSTER_RETURN_IF_ERROR(
      WriteReadyNotebook(subject.job, folder.notebook(), folder.notebook_record()));
  LinkWorkingDir(subject);
  prepared.launch = {
      .argv = {jupyter.program, absl::StrCat("--config=", folder.config()), "--no-browser"},
      .port = options.port > 0 ? options.port : subject.port,
      .page = PageOf(jupyter.kind, NotebookFolder::kNotebook),
      .timeout_seconds = options.timeout_seconds,
      .attached = options.attached};
  return prepared;
}

}  // namespace muster::jobs
