// Runs jobs as CustomJobs of Vertex AI, Google's training service.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/capabilities.h"
#include "platform/registration.h"
#include "platform/vertex/client.h"
#include "platform/vertex/follower.h"
#include "storage/storage.h"
#include "supervise/job_dir.h"
#include "worktree/worktree.h"

namespace muster::vertex {

// Vertex AI holds the state of a job; Observe() brings the records up to date. Output is copied
// from Cloud Logging to this machine whenever it is viewed, and is kept.
class VertexPlatform final : public platform::Platform,
                             public platform::StateSource,
                             public platform::JobCatalog,
                             public platform::PollingControl,
                             public platform::ChosenIds,
                             public platform::RemoteEvaluation,
                             public platform::ImageUser,
                             public platform::MachineInventory {
 public:
  VertexPlatform(platform::Traits traits, platform::Environment environment);

  std::vector<platform::Limit> Unsupported(const job::Submission& submission) const override;
  absl::Status Prepare(job::Submission& submission) override;
  absl::StatusOr<cluster::ClusterSpec> Addresses(const job::Submission& submission) const override;
  absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission& submission,
                                           const cluster::ClusterSpec& cluster,
                                           const cluster::TaskId& task) const override;
  // Errors name the step that failed. Returns Unknown if the job may have been created.
  absl::Status Submit(const job::Submission& submission, const job::JobRecord& record) override;
  absl::StatusOr<std::optional<job::StateChange>> Observe(
      const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) override;
  absl::StatusOr<std::vector<job::JobRecord>> List(const job::Target& where) override;
  absl::StatusOr<job::Submission> Import(const std::string& id, const job::Target& where) override;
  absl::Status Stop(const job::JobRecord& job, bool immediately) override;
  absl::StatusOr<std::unique_ptr<platform::JobWatch>> Watch(const job::JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<supervise::LogStream>> Logs(
      const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) override;
  absl::Status SetPollingInterval(absl::Duration interval) override;
  absl::Status CheckId(const std::string& id) const override;
  bool IsUnmade(const job::Submission& submission) const override;
  void ReuseId(const job::Submission* unmade, job::Submission& next) const override;
  absl::StatusOr<job::Submission> EvaluationOf(const platform::EvaluationRequest& request) override;
  std::string SetResultFile(job::Submission& submission) const override;
  std::vector<platform::Image> RequiredImages(const job::Submission& submission) const override;
  // A machine has the name of its replica: "workerpool1-0".
  std::vector<platform::Machine> Machines(const job::JobRecord& job,
                                          const std::vector<job::TaskRecord>& tasks) override;

 private:
  // Returns the client, or Unavailable for a while after `region`, if given, did not answer.
  absl::StatusOr<Client*> ClientNow(const std::string& region = "");
  // Returns `target` with defaults for all fields that the user left empty.
  absl::StatusOr<job::VertexTarget> Resolve(job::VertexTarget target);
  // Sets the folder of the run: its own, or that of the first run of the chain that it resumes.
  absl::Status FollowChain(job::Submission& submission, job::VertexTarget& target);
  // Returns FailedPrecondition while another job writes to target.run.folder. `resumed` is the run
  // that is resumed there; nullopt = another tool wrote the folder.
  absl::Status CheckUnused(std::optional<job::Submission> resumed, const job::VertexTarget& target);
  // Returns the files of the working directory that are sent. `notice` reports those left out.
  absl::StatusOr<std::vector<worktree::WorkFile>> FilesOf(const job::Submission& submission,
                                                          bool notice) const;
  // Checks that all files that the job needs can be sent. Sends nothing.
  absl::Status CheckFiles(const job::Submission& submission, const job::VertexTarget& target) const;
  // Sends the working directory. Returns a summary for the user.
  absl::StatusOr<std::string> SendFiles(job::Submission& submission,
                                        const job::VertexTarget& target);
  // Creates the bucket if necessary, and sends muster-agent and the working directory.
  absl::Status SendAll(job::Submission& run);
  // Removes the folder of an earlier submission with the same id. Returns Unknown if that
  // submission has a CustomJob after all.
  absl::Status MakeRoom(job::Submission& run, const supervise::JobDir& dir);
  // Creates the CustomJob and returns its resource name.
  absl::StatusOr<std::string> Create(const job::Submission& submission);
  // Returns the CustomJob with Muster's id and, if the target has one, its nonce; or NotFound.
  absl::StatusOr<nlohmann::json> FindOurs(const job::VertexTarget& target, const std::string& id);
  // Returns the CustomJob of a job in the history, and records its name if it was not known.
  // Returns Unknown while the job may still appear.
  absl::StatusOr<nlohmann::json> Find(const job::JobRecord& job, job::Submission& submission);
  absl::StatusOr<FollowOptions> FollowOptionsOf(const job::JobRecord& job,
                                                const job::Submission& submission);
  // Returns the last lines of a task's output from Cloud Logging, or else from the local log.
  std::vector<std::string> LastLines(const FollowOptions& options, const cluster::TaskId& task);
  void Note(const std::string& text) const;

  const platform::Environment environment_;
  storage::Storage storage_;
  std::unique_ptr<Client> client_;
  absl::Duration interval_ = kDefaultInterval;
  // Time at which each region last failed to answer, so that a listing of many jobs waits only
  // once.
  std::map<std::string, absl::Time> failed_;
};

}  // namespace muster::vertex
