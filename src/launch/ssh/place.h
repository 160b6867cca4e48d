// Which hosts a job has, what holds which task, and what is where on them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "job/host_spec.h"
#include "job/task_launch.h"
#include "launch/submission.h"

namespace muster::ssh {

struct PlacedHost {
  HostSpec spec;
  std::string address;  // that other hosts reach it by
  // Known once it has been made ready.
  std::string folder;   // of the job there
  std::string trainer;  // the program there; "": none is needed
  int cpus = 1;
};

// What Submission::place holds of a job on hosts.
struct JobPlace {
  std::vector<PlacedHost> hosts;         // those that hold tasks, in the user's order
  std::map<TaskId, std::string> holder;  // a host's name
  std::string agent;                     // AgentProgram::RemotePath
  bool tls = false;                      // certificates for tasks that talk to each other

  static bool Is(const nlohmann::json& place);
  // What there is of it.
  static JobPlace FromJson(const nlohmann::json& place);
  // DataLoss when it does not have a host for every task.
  static absl::StatusOr<JobPlace> Of(const Submission& submission);
  nlohmann::json ToJson() const;

  // Every task has one.
  const PlacedHost& HostOf(const TaskId& task) const;
};

// The addresses of a job's tasks: those that the user fixed, else those in `current` where the task
// is still on that host, else kUnassigned.
ClusterSpec PlanAddresses(const JobSpec& spec, const JobPlace& place, const ClusterSpec& current);
// Whether Muster may move the task to another port.
bool IsPicked(const JobSpec& spec, const TaskId& task);

absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const JobPlace& place,
                                    const ClusterSpec& cluster, const TaskId& task, int attempt,
                                    int restarts);

}  // namespace muster::ssh
