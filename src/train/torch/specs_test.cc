#include "train/torch/specs.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

Experiment Sound() {
  Experiment experiment;
  experiment.model = []() -> absl::StatusOr<std::unique_ptr<Model>> {
    return absl::UnimplementedError("");
  };
  experiment.data = [](const std::string&) -> absl::StatusOr<std::shared_ptr<const data::Dataset>> {
    return absl::UnimplementedError("");
  };
  experiment.loss = CrossEntropy();
  experiment.metrics = {Accuracy()};
  experiment.train.max_steps = 10;
  experiment.train.optimizer = {.type = "adam", .learning_rate = 0.001};
  return experiment;
}

TEST(CheckExperimentTest, RejectsInvalidNumbers) {
  struct Case {
    const char* message;
    std::function<void(Experiment&)> spoil;
  };
  const Case cases[] = {
      {"max_steps is 0; it must be at least 1", [](auto& e) { e.train.max_steps = 0; }},
      {"batch_size is -8", [](auto& e) { e.train.batch_size = -8; }},
      {"accumulate is 0", [](auto& e) { e.train.accumulate = 0; }},
      {"prefetch is -1", [](auto& e) { e.train.prefetch = -1; }},
      {"staleness is -1", [](auto& e) { e.train.staleness = -1; }},
      {"warmup_steps", [](auto& e) { e.train.schedule.warmup_steps = -1; }},
      {"learning_rate", [](auto& e) { e.train.optimizer.learning_rate = -0.1; }},
      {"keep_checkpoint_max is 0", [](auto& e) { e.run.keep_checkpoint_max = 0; }},
      {"save_checkpoints_steps is -5", [](auto& e) { e.run.save_checkpoints_steps = -5; }},
      {"save_checkpoints_secs is 0", [](auto& e) { e.run.save_checkpoints_secs = 0; }},
      {"save_summary_steps is 0", [](auto& e) { e.run.save_summary_steps = 0; }},
      {"log_step_count_steps is -1", [](auto& e) { e.run.log_step_count_steps = -1; }},
      {"peer_timeout", [](auto& e) { e.run.peer_timeout = absl::ZeroDuration(); }},
      {"evaluate.every_steps is -5", [](auto& e) { e.evaluate.every_steps = -5; }},
      {"evaluate.steps is 0", [](auto& e) { e.evaluate.steps = 0; }},
      {"evaluate.batch_size is -1", [](auto& e) { e.evaluate.batch_size = -1; }},
      {"throttle", [](auto& e) { e.evaluate.throttle = -absl::Seconds(1); }},
      {"top0_accuracy", [](auto& e) { e.metrics = {TopK(0)}; }},
  };
  ASSERT_EQ(CheckExperiment(Sound()), absl::OkStatus());
  for (const Case& spoilt : cases) {
    Experiment experiment = Sound();
    spoilt.spoil(experiment);
    const absl::Status status = CheckExperiment(experiment);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << spoilt.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(spoilt.message));
  }
}

// job/format/train_section_test.cc checks the same defaults in a job file.
TEST(OptimizerOfTest, DefaultsAreThoseOfAJobFile) {
  const auto of_library = OptimizerOf(TrainSpec{});
  ASSERT_TRUE(of_library.ok()) << of_library.status();
  EXPECT_EQ(*of_library, *OptimizerConfig::FromJson(nlohmann::json::object()));
  for (const char* type : {"sgd", "adam", "adamw", "adagrad", "rmsprop"}) {
    TrainSpec train;
    train.optimizer.type = type;
    const auto config = OptimizerOf(train);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(*config, *OptimizerConfig::FromJson({{"type", type}})) << type;
  }
}

TEST(SettingsTest, DifferencesAreNamedAsInAJobFile) {
  Experiment experiment = Sound();
  experiment.settings = {{"model", "mlp"}};
  const nlohmann::json then = SettingsOf(experiment);
  EXPECT_EQ(DifferencesOf(then, SettingsOf(experiment)), "");
  // More steps, other intervals and another number of tasks train the same further.
  experiment.train.max_steps = 500;
  experiment.train.strategy = "allreduce";
  experiment.run.save_checkpoints_steps = 7;
  EXPECT_EQ(DifferencesOf(then, SettingsOf(experiment)), "");
  experiment.train.optimizer.learning_rate = 0.5;
  experiment.train.clip_norm = 1.5;
  experiment.settings["model"] = "cnn";
  experiment.train.warm_start = "/runs/a";
  EXPECT_EQ(DifferencesOf(then, SettingsOf(experiment)),
            "clip_norm 1.5, was 0.0; model cnn, was mlp; optimizer.learning_rate 0.5, was 0.001; "
            "warm_start /runs/a, was not set");
  experiment = Sound();
  experiment.settings = {{"model", "mlp"}};
  experiment.train.optimizer.type = "sgd";
  EXPECT_EQ(DifferencesOf(then, SettingsOf(experiment)), "optimizer.type sgd, was adam");
  EXPECT_EQ(DifferencesOf({}, SettingsOf(experiment)), "");  // of a checkpoint without them
}

}  // namespace
}  // namespace muster::train
