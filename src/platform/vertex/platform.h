// Runs jobs as CustomJobs of Vertex AI, Google's training service.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "platform/vertex/client.h"
#include "platform/vertex/follower.h"
#include "storage/storage.h"
#include "supervise/job_dir.h"
#include "worktree/worktree.h"

namespace muster::vertex {

struct PlatformOptions {
  std::string version;  // of Muster and of its image
  std::string home;     // Muster's home on this machine, which is never sent
  std::function<void(const std::string&)> note;  // receives messages for the user
};

// Vertex AI holds the state of a job; Observe() brings the records up to date. Output is copied
// from Cloud Logging to this machine whenever it is viewed, and is kept.
class VertexPlatform final : public Platform {
 public:
  explicit VertexPlatform(PlatformOptions options) : options_(std::move(options)) {}

  absl::string_view name() const override { return "vertex"; }
  std::vector<Limit> Unsupported(const Submission& submission) const override;
  absl::Status Prepare(Submission& submission) override;
  std::string Describe(const Submission& submission) const override;
  absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task) const override;
  // Errors name the step that failed. Returns Unknown if the job may have been created.
  absl::Status Submit(const Submission& submission, const JobRecord& record) override;
  Liveness Check(const JobRecord&) override { return Liveness::kUnknown; }
  bool is_observed() const override { return true; }
  absl::StatusOr<std::optional<StateChange>> Observe(const JobRecord& job,
                                                     const std::vector<TaskRecord>& tasks) override;
  absl::StatusOr<std::vector<JobRecord>> List(const Target& where) override;
  absl::StatusOr<Submission> Import(const std::string& id, const Target& where) override;
  absl::Status Stop(const JobRecord& job, bool immediately) override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job, const std::vector<TaskRecord>& tasks,
                                        const Submission& next) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                  const std::vector<TaskId>& tasks) override;
  absl::Status SetPollingInterval(absl::Duration interval) override;

  // Returns the run that owns `folder`, as submitted. An evaluation reads its model.
  absl::StatusOr<Submission> ReadTraining(const std::string& folder);

 private:
  // Returns the client, or Unavailable for a while after `region`, if given, did not answer.
  absl::StatusOr<Client*> ClientNow(const std::string& region = "");
  // Returns `target` with defaults for all fields that the user left empty.
  absl::StatusOr<VertexTarget> Resolve(VertexTarget target);
  // Sets the folder of the run: its own, or that of the first run of the chain that it resumes.
  absl::Status FollowChain(Submission& submission, VertexTarget& target);
  // Returns FailedPrecondition while another job writes to the folder of the resumed run.
  absl::Status CheckUnused(const Submission& submission, const VertexTarget& target);
  // Returns the files of the working directory that are sent. `notice` reports those left out.
  absl::StatusOr<std::vector<WorkFile>> FilesOf(const Submission& submission, bool notice) const;
  // Checks that all files that the job needs can be sent. Sends nothing.
  absl::Status CheckFiles(const Submission& submission, const VertexTarget& target) const;
  // Sends the working directory. Returns a summary for the user.
  absl::StatusOr<std::string> SendFiles(Submission& submission, const VertexTarget& target);
  // Creates the bucket if necessary and sends the working directory.
  absl::Status SendAll(Submission& run);
  // Removes the folder of an earlier submission with the same id. Returns Unknown if that
  // submission has a CustomJob after all.
  absl::Status MakeRoom(Submission& run, const JobDir& dir);
  // Creates the CustomJob and returns its resource name.
  absl::StatusOr<std::string> Create(const Submission& submission);
  // Returns the CustomJob with Muster's id and, if the target has one, its nonce; or NotFound.
  absl::StatusOr<nlohmann::json> FindOurs(const VertexTarget& target, const std::string& id);
  // Returns the CustomJob of a job in the history, and records its name if it was not known.
  // Returns Unknown while the job may still appear.
  absl::StatusOr<nlohmann::json> Find(const JobRecord& job, Submission& submission);
  absl::StatusOr<FollowOptions> FollowOptionsOf(const JobRecord& job, const Submission& submission);
  // Returns the last lines of a task's output from Cloud Logging, or else from the local log.
  std::vector<std::string> LastWords(const FollowOptions& options, const TaskId& task);
  void Note(const std::string& text) const;

  const PlatformOptions options_;
  storage::Storage storage_;
  std::unique_ptr<Client> client_;
  absl::Duration interval_ = kDefaultInterval;
  // Time at which each region last failed to answer, so that a listing of many jobs waits only
  // once.
  std::map<std::string, absl::Time> failed_;
};

}  // namespace muster::vertex
