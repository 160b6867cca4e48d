#include "platform/vertex/registration.h"

#include <utility>

#include "platform/vertex/custom_job.h"
#include "platform/vertex/platform.h"
#include "platform/vertex/task_main.h"

namespace muster::vertex {
namespace {

class VertexOptions final : public platform::Options {
 public:
  void AddTo(platform::OptionUse use, platform::OptionSink& sink) override {
    if (use == platform::OptionUse::kDoctor) return;
    if (use == platform::OptionUse::kEvaluate) {
      sink.Option(
          "--train-folder", &train_folder_,
          "The folder of the run, instead of a JOB: gs://BUCKET/muster_ID or BUCKET/muster_ID");
    }
    sink.Option("--project", &target_.project,
                "The project (default: that of the credentials, or GOOGLE_CLOUD_PROJECT)");
    sink.Option("--region", &target_.region, "The region (default: us-central1)");
    if (use == platform::OptionUse::kFind || use == platform::OptionUse::kEnv) return;
    AddJobOptions(sink);
    if (use == platform::OptionUse::kRun) AddTrainOptions(sink);
  }

  std::string FirstGiven() const override {
    const std::pair<const char*, const std::string*> texts[] = {
        {"--train-folder", &train_folder_},
        {"--project", &target_.project},
        {"--region", &target_.region},
        {"--job-id", &job_id_},
        {"--bucket", &target_.bucket},
        {"--folder-prefix", &target_.folder_prefix},
        {"--scale-tier", &target_.tier},
        {"--master-type", &target_.master_type},
        {"--worker-type", &target_.worker_type},
        {"--parameter-server-type", &target_.parameter_server_type},
        {"--dataset", &target_.dataset},
        {"--resume", &resumes_},
        {"--image", &target_.image}};
    for (const auto& [name, value] : texts) {
      if (!value->empty()) return name;
    }
    if (worker_count_ >= 0) return "--worker-count";
    if (parameter_server_count_ >= 0) return "--parameter-server-count";
    return target_.rebuild ? "--rebuild" : "";
  }

  job::Target ToTarget() const override {
    job::VertexTarget target = target_;
    if (worker_count_ >= 0) target.workers = worker_count_;
    if (parameter_server_count_ >= 0) target.parameter_servers = parameter_server_count_;
    return target;
  }
  absl::StatusOr<job::Target> InRepository(const std::string& repository) const override {
    if (!target_.image.empty()) return platform::ExcludesRepository("--image");
    job::Target target = ToTarget();
    std::get<job::VertexTarget>(target).image_repository = repository;
    return target;
  }
  std::string job_id() const override { return job_id_; }
  std::string resumes() const override { return resumes_; }
  std::string train_folder() const override { return train_folder_; }

 private:
  void AddJobOptions(platform::OptionSink& sink) {
    sink.Option("--job-id", &job_id_,
                "The id of the new job (default: train_DATE_TIME or eval_DATE_TIME)");
    sink.Option("--bucket", &target_.bucket,
                "The bucket for all inputs and outputs of the job (default: MUSTER_VERTEX_BUCKET, "
                "or muster-PROJECT)");
    sink.Option("--folder-prefix", &target_.folder_prefix,
                "The beginning of the folder's name in the bucket, before the id (default: "
                "MUSTER_VERTEX_FOLDER_PREFIX, or muster_)");
    sink.Option(
        "--scale-tier", &target_.tier,
        "The scale tier: BASIC, STANDARD_1, PREMIUM_1, BASIC_GPU or CUSTOM (default: BASIC_GPU)");
    sink.Option("--master-type", &target_.master_type,
                "CUSTOM: the machine type of the leading task (default: standard_gpu)");
    sink.Option("--image", &target_.image, "The image for roles that do not set one");
    sink.Flag("--rebuild", &target_.rebuild,
              "Package the working directory again and send all of it");
  }

  void AddTrainOptions(platform::OptionSink& sink) {
    sink.Option("--worker-type", &target_.worker_type,
                "CUSTOM: the machine type of workers (default: standard_gpu)");
    sink.Option("--worker-count", &worker_count_,
                "CUSTOM: the number of workers, also if the file has none (default: that of the "
                "file)");
    sink.Option("--parameter-server-type", &target_.parameter_server_type,
                "CUSTOM: the machine type of ps tasks (default: large_model)");
    sink.Option("--parameter-server-count", &parameter_server_count_,
                "CUSTOM: the number of ps tasks, also if the file has none (default: that of the "
                "file)");
    sink.Option("--dataset", &target_.dataset,
                "The built-in trainer's data, a URL or BUCKET/PATH (default: that of the file)");
    sink.Option("--resume", &resumes_,
                "The id of the job to resume; the new job writes to the same folder");
  }

  job::VertexTarget target_;
  std::string job_id_;
  std::string resumes_;
  std::string train_folder_;
  int worker_count_ = -1;  // -1 = not given, here and below
  int parameter_server_count_ = -1;
};

}  // namespace

platform::Registration Registration() {
  return {.traits = {.name = "vertex",
                     .title = "Vertex AI",
                     .slow_to_submit = true,
                     .work_dir = platform::WorkDirUse::kSent,
                     .assigns_addresses_late = true},
          .make =
              [](const platform::Traits& traits, const platform::Environment& environment) {
                return std::make_unique<VertexPlatform>(traits, environment);
              },
          .make_options = [] { return std::make_unique<VertexOptions>(); },
          .entry_points = {{.name = kTaskCommand,
                            .arguments = {"FOLDER", "NONCE", "SHA256"},
                            .run = [](const std::vector<std::string>& arguments) {
                              return RunRemoteTask({.folder = arguments[0],
                                                    .nonce = arguments[1],
                                                    .sha256 = arguments[2]});
                            }}}};
}

}  // namespace muster::vertex
