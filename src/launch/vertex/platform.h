// Jobs as CustomJobs of Vertex AI, Google's service for training.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/job_dir.h"
#include "launch/platform.h"
#include "launch/vertex/client.h"
#include "launch/vertex/follower.h"
#include "launch/vertex/place.h"
#include "launch/work_dir.h"
#include "storage/storage.h"

namespace muster::vertex {

struct PlatformOptions {
  std::string version;                           // of Muster, and of its image
  std::string home;                              // Muster's on this machine, which is never sent
  std::function<void(const std::string&)> note;  // is told what the user should know
};

// A job's state is Vertex AI's: Observe() brings the records up to date with it. Its output is
// copied to this machine from Cloud Logging whenever somebody looks, and stays.
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
  // A failure says at which step it came; Unknown when the job may have been made.
  absl::Status Submit(const Submission& submission, const JobRecord& record) override;
  Liveness Check(const JobRecord&) override { return Liveness::kUnknown; }
  bool is_observed() const override { return true; }
  absl::StatusOr<std::optional<StateChange>> Observe(const JobRecord& job,
                                                     const std::vector<TaskRecord>& tasks) override;
  absl::StatusOr<std::vector<JobRecord>> List(const nlohmann::json& place) override;
  absl::StatusOr<Submission> Import(const std::string& id, const nlohmann::json& place) override;
  absl::Status Stop(const JobRecord& job, bool at_once) override;
  absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job, const std::vector<TaskRecord>& tasks,
                                        const Submission& next) override;
  absl::Status Update(const JobRecord& job, const Submission& next) override;
  absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) override;
  absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                  const std::vector<TaskId>& tasks) override;
  absl::Status SetPollingInterval(absl::Duration interval) override;

  // The run whose folder it is, as it was submitted: where an evaluation takes the model from.
  absl::StatusOr<Submission> ReadTraining(const std::string& folder);

 private:
  // Unavailable for a while when `region`, if it is said, did not answer.
  absl::StatusOr<Client*> ClientNow(const std::string& region = "");
  // With everything that the user left open.
  absl::StatusOr<Place> Resolve(Place place);
  absl::Status FollowChain(Submission& submission, Place& place);
  // FailedPrecondition while a job writes to the place's folder, which is that of a resumed one.
  absl::Status CheckUnused(const Submission& submission, const Place& place);
  // What is sent of the working directory; `notice` is told what is kept back.
  absl::StatusOr<std::vector<WorkFile>> FilesOf(const Submission& submission, bool notice) const;
  absl::Status CheckFiles(const Submission& submission, const Place& place) const;
  absl::StatusOr<std::string> SendFiles(Submission& submission, const Place& place);
  // The bucket, and what is in the working directory.
  absl::Status SendAll(Submission& run);
  absl::Status MakeRoom(Submission& run, const JobDir& dir);
  absl::StatusOr<std::string> Create(const Submission& submission);
  // The CustomJob with our id of it, and of the place's nonce if it has one; NotFound.
  absl::StatusOr<nlohmann::json> FindOurs(const Place& place, const std::string& id);
  // That of a job of the history, of which it may not be known yet. Unknown while it may come to
  // be.
  absl::StatusOr<nlohmann::json> Find(const JobRecord& job, Submission& submission);
  absl::StatusOr<FollowOptions> FollowOptionsOf(const JobRecord& job, const Submission& submission);
  std::vector<std::string> LastWords(const FollowOptions& options, const TaskId& task);
  void Note(const std::string& text) const;

  const PlatformOptions options_;
  storage::Storage storage_;
  std::unique_ptr<Client> client_;
  absl::Duration interval_ = kDefaultInterval;
  // When each region last did not answer: who lists a hundred jobs of one that is silent waits
  // once.
  std::map<std::string, absl::Time> failed_;
};

}  // namespace muster::vertex
