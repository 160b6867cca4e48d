#include "train/run/environment.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "cluster/ranks.h"

namespace muster::train {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <typename T>
std::optional<T> Number(const char* name) {
  T number = 0;
  if (absl::SimpleAtoi(Variable(name), &number)) return number;
  return std::nullopt;
}

std::optional<absl::Duration> Seconds(const char* name) {
  const auto seconds = Number<int64_t>(name);
  if (!seconds || *seconds <= 0) return std::nullopt;
  return absl::Seconds(*seconds);
}

}  // namespace

absl::StatusOr<Environment> Environment::FromEnv(const std::optional<cluster::TaskFlags>& flags) {
  Environment environment;
  environment.model_dir = Variable("MUSTER_MODEL_DIR");
  cluster::TfConfig config;
  if (flags.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(config, cluster::ReadTaskFlags(*flags));
  } else if (const std::string text = Variable("TF_CONFIG"); !text.empty()) {
    MUSTER_ASSIGN_OR_RETURN(config, cluster::ReadTfConfig(text, environment.model_dir));
  }
  if (config.task.has_value()) environment.self = *config.task;
  if (environment.model_dir.empty()) environment.model_dir = config.model_dir;
  environment.cluster = config.cluster.Without("evaluator");
  environment.is_chief = cluster::IsChief(config);
  // A task alone in its cluster runs as a single process.
  if (environment.cluster.size() <= 1 && environment.self.role != "evaluator" &&
      environment.self.role != "ps") {
    environment.cluster = {};
    environment.is_chief = true;
  }
  environment.job_name = Variable("MUSTER_JOB_NAME");
  environment.job_id = Variable("MUSTER_JOB_ID");
  environment.attempt = Number<int>("MUSTER_ATTEMPT").value_or(0);
  environment.socket_dir = Variable("MUSTER_SOCKET_DIR");
  environment.tls_dir = Variable("MUSTER_TLS_DIR");
  environment.plaintext = Variable("MUSTER_INSECURE_PLAINTEXT") == "1";
  environment.progress_file = Variable("MUSTER_PROGRESS_FILE");
  environment.error_file = Variable("TORCHELASTIC_ERROR_FILE");
  environment.train_config = Variable("MUSTER_TRAIN_CONFIG");
  environment.evaluators = Number<int>("MUSTER_EVALUATORS");
  // The flags cannot name evaluators.
  if (flags.has_value() && !environment.evaluators) environment.evaluators = 0;
  environment.start_timeout = Seconds("MUSTER_START_TIMEOUT");
  environment.peer_timeout = Seconds("MUSTER_PEER_TIMEOUT");
  environment.resume_step = Number<int64_t>("MUSTER_RESUME_STEP");
  return environment;
}

std::vector<cluster::TaskId> Environment::TrainingTasks() const {
  if (cluster.empty()) return {self};
  return cluster::RankedTasks(cluster);
}

int Environment::Rank() const {
  const std::vector<cluster::TaskId> tasks = TrainingTasks();
  const auto found = std::find(tasks.begin(), tasks.end(), self);
  return found == tasks.end() ? -1 : static_cast<int>(found - tasks.begin());
}

int Environment::Servers() const {
  const auto servers = cluster.roles().find("ps");
  return servers == cluster.roles().end() ? 0 : static_cast<int>(servers->second.size());
}

std::string Environment::AddressOf(const cluster::TaskId& task) const {
  if (socket_dir.empty()) return std::string(cluster.AddressOf(task));
  return absl::StrCat("unix:",
                      base::JoinPath(socket_dir, absl::StrCat(task.role, "-", task.index)));
}

bool Environment::ChiefEvaluates() const {
  if (evaluators.has_value()) return *evaluators == 0;
  // Without the launcher's answer the role decides: in TensorFlow's convention a "master"
  // evaluates, a "chief" leaves it to an evaluator.
  return cluster.empty() || self.role == "master";
}

}  // namespace muster::train
