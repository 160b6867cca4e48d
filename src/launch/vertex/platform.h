// Jobs as CustomJobs of Vertex AI, Google's service for training.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  std::vector<std::string> Unsupported(const JobSpec& spec) const override;
  absl::Status Prepare(Submission& submission) override;
  std::string Describe(const Submission& submission) const override;
  absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const override;
  absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission, const ClusterSpec& cluster,
                                      const TaskId& task) const override;
  // A failure says at which step it came.
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
  absl::StatusOr<Client*> ClientNow();
  // With everything that the user left open.
  absl::StatusOr<Place> Resolve(Place place);
  absl::Status FollowChain(Submission& submission, Place& place);
  // What is sent of the working directory; `notice` is told what is kept back.
  absl::StatusOr<std::vector<WorkFile>> FilesOf(const Submission& submission, bool notice) const;
  absl::Status CheckFiles(const Submission& submission, const Place& place) const;
  absl::StatusOr<std::string> SendFiles(Submission& submission, const Place& place);
  absl::Status MakeRoom(const Place& place, const std::string& id);
  absl::StatusOr<std::string> Create(const Submission& submission);
  // The CustomJob with our id of it; NotFound.
  absl::StatusOr<nlohmann::json> FindOurs(const Place& place, const std::string& id);
  // That of a job of the history, of which it may not be known yet.
  absl::StatusOr<nlohmann::json> Find(const JobRecord& job, Submission& submission);
  absl::StatusOr<FollowOptions> FollowOptionsOf(const JobRecord& job, const Submission& submission);
  void Note(const std::string& text) const;

  const PlatformOptions options_;
  storage::Storage storage_;
  std::unique_ptr<Client> client_;
  absl::Duration interval_ = kDefaultInterval;
  // Who lists a hundred jobs of a service that does not answer waits once.
  absl::Status failure_;
  absl::Time failed_ = absl::InfinitePast();
};

}  // namespace muster::vertex
