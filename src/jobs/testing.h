// Fake platforms: they run nothing, and the test sets the outcome of each job.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/testing.h"
#include "jobs/service.h"
#include "jobs/start/load.h"
#include "platform/capabilities.h"
#include "supervise/job_dir.h"

namespace muster::jobs {

// Closed from the beginning: the job ends before any caller waits for it.
class ClosedWatch final : public platform::JobWatch {
 public:
  ClosedWatch() : fd_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}
  ~ClosedWatch() override { ::close(fd_); }
  int fd() const override { return fd_; }
  bool Drain() override { return false; }

 private:
  const int fd_;
};

class FakePlatform : public platform::Platform {
 public:
  explicit FakePlatform(platform::Traits traits) : Platform(std::move(traits)) {}

  std::vector<platform::Limit> Unsupported(const job::Submission&) const override { return limits; }
  absl::Status Prepare(job::Submission&) override { return prepared; }
  absl::StatusOr<cluster::ClusterSpec> Addresses(const job::Submission&) const override {
    return addresses;
  }
  absl::StatusOr<job::TaskLaunch> LaunchOf(const job::Submission&, const cluster::ClusterSpec&,
                                           const cluster::TaskId&) const override {
    return launch;
  }
  absl::Status Submit(const job::Submission& submission, const job::JobRecord& record) override {
    submissions.push_back(submission);
    if (!submitted.ok()) return submitted;
    return supervise::JobDir(record.directory).SaveSubmission(submission);
  }
  absl::Status Stop(const job::JobRecord& job, bool immediately) override {
    stops.emplace_back(job.id, immediately);
    return stopped;
  }
  absl::StatusOr<std::unique_ptr<platform::JobWatch>> Watch(const job::JobRecord&) override {
    return std::make_unique<ClosedWatch>();
  }
  absl::StatusOr<std::unique_ptr<supervise::LogStream>> Logs(
      const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) override {
    return std::make_unique<supervise::MergedLogReader>(supervise::JobDir(job.directory).logs(),
                                                        tasks);
  }

  // The results that the platform returns.
  std::vector<platform::Limit> limits;
  cluster::ClusterSpec addresses;
  job::TaskLaunch launch;
  absl::Status prepared, submitted, stopped;
  // The calls that it received.
  std::vector<job::Submission> submissions;
  std::vector<std::pair<std::string, bool>> stops;
};

// A platform like `local`: jobs have a supervisor here, can be checked and changed.
class FakeSupervised final : public FakePlatform,
                             public platform::Supervision,
                             public platform::JobUpdater,
                             public platform::JobPreflight {
 public:
  using FakePlatform::FakePlatform;

  platform::Liveness Check(const job::JobRecord&) override { return liveness; }
  int KillLeftovers(const job::JobRecord&) override { return ++kills; }
  absl::StatusOr<supervise::UpdatePlan> PlanUpdate(const job::JobRecord&,
                                                   const std::vector<job::TaskRecord>&,
                                                   const job::Submission&) override {
    return update;
  }
  absl::Status Update(const job::JobRecord& job, const job::Submission& next) override {
    if (!updated.ok()) return updated;
    updates.emplace_back(job.id, next);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<platform::Finding>> CheckJob(const job::Submission&, bool) override {
    return findings;
  }

  platform::Liveness liveness = platform::Liveness::kAlive;
  int kills = 0;
  supervise::UpdatePlan update;
  absl::Status updated;  // the answer of Update()
  std::vector<std::pair<std::string, job::Submission>> updates;
  std::vector<platform::Finding> findings;
};

// A platform whose jobs are polled.
class FakePolled : public FakePlatform, public platform::StateSource {
 public:
  using FakePlatform::FakePlatform;

  absl::StatusOr<std::optional<job::StateChange>> Observe(
      const job::JobRecord& job, const std::vector<job::TaskRecord>&) override {
    if (!answer.ok()) return answer;
    job::StateChange change{.job = job};
    change.job.supervisor.reset();  // the platform owns the job from now on
    change.job.state = state;
    if (sets_started) change.job.started = absl::Now();
    if (job::IsFinal(state)) change.job.finished = absl::Now();
    return change;
  }

  absl::Status answer;  // of Observe()
  job::JobState state = job::JobState::kRunning;
  bool sets_started = false;
};

// A platform like `kubernetes`: it is polled, lists jobs of others too, and has notebooks.
class FakeObserved final : public FakePolled,
                           public platform::JobCatalog,
                           public platform::NotebookHost {
 public:
  using FakePolled::FakePolled;

  absl::StatusOr<std::vector<job::JobRecord>> List(const job::Target&) override { return listed; }
  absl::StatusOr<job::Submission> Import(const std::string& id, const job::Target&) override {
    const auto found = others.find(id);
    if (found == others.end()) return absl::NotFoundError(absl::StrCat("no TFJob '", id, "'"));
    return found->second;
  }
  absl::StatusOr<platform::NotebookAccess> FindNotebook(const job::Submission& job) override {
    return platform::NotebookAccess{.name = absl::StrCat("notebook of ", job.spec.name)};
  }

  std::vector<job::JobRecord> listed;
  std::map<std::string, job::Submission> others;
};

// A platform like `vertex`: users choose ids, models are evaluated there, jobs cannot be changed.
class FakeNamed final : public FakePolled,
                        public platform::ChosenIds,
                        public platform::RemoteEvaluation {
 public:
  explicit FakeNamed(platform::Traits traits) : FakePolled(std::move(traits)) {
    sets_started = true;
  }

  absl::Status CheckId(const std::string& id) const override {
    return id == "BAD" ? absl::InvalidArgumentError("bad id") : absl::OkStatus();
  }
  bool IsUnmade(const job::Submission& submission) const override {
    return job::TargetOf<job::VertexTarget>(submission).run.custom_job.empty();
  }
  void ReuseId(const job::Submission* unmade, job::Submission& next) const override {
    job::VertexRun& run = job::MutableTargetOf<job::VertexTarget>(next).run;
    run.tries = unmade == nullptr ? std::vector<std::string>{"new"}
                                  : job::TargetOf<job::VertexTarget>(*unmade).run.tries;
  }
  absl::StatusOr<job::Submission> EvaluationOf(
      const platform::EvaluationRequest& request) override {
    job::Submission submission{.created = absl::Now(), .target = request.target};
    submission.spec.name = "x-evaluate";
    submission.spec.roles = {{.name = "evaluator", .command = {"evaluate"}}};
    return submission;
  }
  std::string SetResultFile(job::Submission& submission) const override {
    return absl::StrCat("gs://b/eval/", submission.id, ".json");
  }
};

// A service with the three platforms above, in a home of its own.
class TestService {
 public:
  // `program` is the path of muster, beside which muster-trainer is looked up.
  explicit TestService(std::string program = "/nonexistent/muster")
      : registry_({Register({.name = "local",
                             .title = "this machine",
                             .runs_here = true,
                             .uses_installed_trainer = true,
                             .work_dir = platform::WorkDirUse::kShared},
                            &local_),
                   Register({.name = "kubernetes", .title = "Kubernetes", .slow_to_submit = true},
                            &cluster_),
                   Register({.name = "vertex",
                             .title = "Vertex AI",
                             .slow_to_submit = true,
                             .work_dir = platform::WorkDirUse::kSent},
                            &named_)},
                  {}),
        service_({.home = temp_.path(),
                  .program = std::move(program),
                  .notify = [this](const std::string& text) { notices.push_back(text); }},
                 registry_) {
    for (const std::string& name : registry_.names()) EXPECT_TRUE(registry_.Find(name).ok());
  }

  Service& operator*() { return service_; }
  Service* operator->() { return &service_; }
  FakeSupervised& local() { return *local_; }
  FakeObserved& cluster() { return *cluster_; }
  FakeNamed& named() { return *named_; }

  // Returns the submission of a job file.
  job::Submission Load(const std::string& text, job::Target target = job::LocalTarget()) {
    auto submission = LoadSubmission(service_, {{"job.yaml", text}}, work_.path());
    EXPECT_TRUE(submission.ok()) << submission.status();
    if (!submission.ok()) return {};
    submission->target = std::move(target);
    return *std::move(submission);
  }

  std::vector<std::string> notices;

 private:
  template <typename T>
  static platform::Registration Register(platform::Traits traits, T** made) {
    return {.traits = std::move(traits),
            .make = [made](const platform::Traits& its, const platform::Environment&) {
              auto platform = std::make_unique<T>(its);
              *made = platform.get();
              return platform;
            }};
  }

  const base::TempDir temp_, work_;
  FakeSupervised* local_ = nullptr;
  FakeObserved* cluster_ = nullptr;
  FakeNamed* named_ = nullptr;
  platform::Registry registry_;
  Service service_;
};

inline constexpr char kJob[] = "name: x\nroles: {worker: {replicas: 2, command: 'true'}}\n";

}  // namespace muster::jobs
