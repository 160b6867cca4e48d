#include "job/format/train_section.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using testing::HasSubstr;

constexpr char kData[] = "model: cnn, steps: 10, data: {format: synthetic}";

std::string Job(const std::string& train, const std::string& roles = "") {
  return absl::StrCat("name: a\n", roles, "train: {", train, "}\n");
}

TEST(TrainSectionTest, DefaultsAreFilledIn) {
  const JobSpec job = MustParse(Job(kData));
  EXPECT_EQ(job.train.dump(),
            R"({"batch_size":32,"checkpoint":{"every_secs":600,"keep":5},)"
            R"("data":{"format":"synthetic","split":"train"},"log_every_steps":100,"model":"cnn",)"
            R"("nan_guard":"stop","optimizer":{"learning_rate":0.01,"type":"sgd"},"steps":10,)"
            R"("strategy":"allreduce","summary":{"every_steps":100,"histograms":false}})");
  EXPECT_EQ(job.model_dir, "/home/me/runs/a");
  EXPECT_EQ(job.Tasks(), (std::vector<cluster::TaskId>{{"chief", 0}}));
}

TEST(TrainSectionTest, RelativePathsAreResolved) {
  const JobSpec job = MustParse(
      Job("model: net.pt, steps: 1, warm_start: gs://b/x, data: {format: idx, path: ../d}"));
  EXPECT_EQ(job.train["model"], "/home/me/net.pt");
  EXPECT_EQ(job.train["warm_start"], "gs://b/x");
  EXPECT_EQ(job.train["data"]["path"], "/home/d");
}

TEST(TrainSectionTest, ShortForms) {
  EXPECT_EQ(MustParse(Job(absl::StrCat(kData, ", export: best"))).train["export"].dump(),
            R"({"format":"torchscript","when":"best"})");
  EXPECT_EQ(MustParse(Job(absl::StrCat(kData, ", evaluate: {}"))).train["evaluate"].dump(),
            R"({"split":"test"})");
  EXPECT_EQ(MustParse(Job("model: cnn, steps: 1e6, data: {format: synthetic}")).train["steps"],
            1'000'000);
}

TEST(TrainSectionTest, EvaluationsCanBeOff) {
  for (const char* off : {"off", "false", "'off'"}) {
    const JobSpec job = MustParse(Job(absl::StrCat(kData, ", evaluate: ", off)));
    EXPECT_EQ(job.train["evaluate"], "off");
    EXPECT_TRUE(IsEvaluationOff(job.train));
    EXPECT_EQ(EvaluationSplit(job.train), "test");
    // The trainer reads what was written.
    EXPECT_EQ(MustParse(Job(job.train.dump().substr(1, job.train.dump().size() - 2))).train,
              job.train);
  }
  EXPECT_FALSE(IsEvaluationOff(MustParse(Job(kData)).train));
  EXPECT_EQ(EvaluationSplit(MustParse(Job(absl::StrCat(kData, ", evaluate: {split: v}"))).train),
            "v");
  EXPECT_THAT(MistakesOf(Job(absl::StrCat(kData, ", evaluate: never"))),
              HasSubstr("'evaluate' of train must be a map or off, not text 'never'"));
  EXPECT_THAT(MistakesOf(Job(absl::StrCat(kData, ", evaluate: off, export: final"))),
              HasSubstr("'export' of train needs evaluations, and 'evaluate' is off"));
  EXPECT_THAT(MistakesOf(Job(absl::StrCat(kData, ", evaluate: off"),
                             "roles: {chief: {}, evaluator: {}}\n")),
              HasSubstr("the role 'evaluator' has nothing to do"));
}

TEST(TrainSectionTest, OptionsAreCheckedAndCompleted) {
  const JobSpec job = MustParse(Job(
      absl::StrCat(kData,
                   ", nan_guard: skip, log_every_steps: 5, summary: {histograms: true}, export: "
                   "{format: safetensors}, early_stopping: {patience: 50, min_delta: 1e-4}, "
                   "evaluate: {every_steps: 10, start_delay_secs: 0, throttle_secs: 30}")));
  EXPECT_EQ(job.train["nan_guard"], "skip");
  EXPECT_EQ(job.train["log_every_steps"], 5);
  EXPECT_EQ(job.train["summary"].dump(), R"({"every_steps":100,"histograms":true})");
  EXPECT_EQ(job.train["export"].dump(), R"({"format":"safetensors","when":"final"})");
  EXPECT_EQ(job.train["early_stopping"].dump(), R"({"min_delta":0.0001,"patience":50})");
  EXPECT_EQ(job.train["evaluate"].dump(),
            R"({"every_steps":10,"split":"test","start_delay_secs":0,"throttle_secs":30})");
}

TEST(TrainSectionTest, RejectsZeroStepsAndBatches) {
  EXPECT_EQ(MistakesOf(Job("model: cnn, steps: 0, data: {format: synthetic}")),
            "job.yaml:2:28: 'steps' of train must be a whole number from 1 to 1000000000000000, "
            "not the number 0");
  EXPECT_THAT(MistakesOf(Job(absl::StrCat(kData, ", batch_size: 0"))),
              HasSubstr("'batch_size' of train must be a whole number from 1 to 1000000, not the "
                        "number 0"));
  EXPECT_THAT(MistakesOf(Job(absl::StrCat(kData, ", log_every_steps: 0"))),
              HasSubstr("'log_every_steps' of train must be a whole number from 1"));
}

TEST(TrainSectionTest, EarlyStoppingRequiresPatience) {
  const auto mistakes = [](const std::string& value) {
    return MistakesOf(Job(absl::StrCat(kData, ", early_stopping: ", value)));
  };
  for (const char* value : {"{}", "{min_delta: 1}", ""}) {
    EXPECT_THAT(mistakes(value), HasSubstr("'early_stopping' of train lacks 'patience'; expected "
                                           "the steps without improvement"))
        << value;
  }
  EXPECT_THAT(mistakes("{patience: 0}"), HasSubstr("must be a whole number from 1"));
  EXPECT_THAT(mistakes("{patience: 5, min_delta: -1}"), HasSubstr("must be a number from 0"));
  EXPECT_THAT(mistakes("7"), HasSubstr("'early_stopping' of train must be a map"));
}

TEST(TrainSectionTest, RejectsReadyListeningForTheBuiltInTrainer) {
  EXPECT_THAT(MistakesOf(Job(kData, "roles: {worker: 1, ps: {ready: listening}}\n")),
              HasSubstr("role 'ps' has 'ready: listening', but the built-in trainer need not "
                        "listen on its port; remove 'ready'"));
  EXPECT_EQ(MistakesOf(Job(kData, "roles: {worker: 1, x: {command: x, ready: listening}}\n")), "");
}

TEST(TrainSectionTest, EveryMistakeIsReported) {
  EXPECT_EQ(
      MistakesOf("name: a\n"
                 "train:\n"
                 "  modle: cnn\n"
                 "  data: {format: minst, path: x, shufle: true}\n"
                 "  optimizer: {type: adm, learning_rate: fast}\n"
                 "  steps: 0\n"
                 "  metrics: [acuracy]\n"
                 "  checkpoint: {every_steps: 1, every_secs: 1}\n"
                 "  staleness: 3\n"),
      "job.yaml:3:3: train lacks 'model'; expected the name of a built-in model, or a TorchScript "
      "file\n"
      "job.yaml:3:3: unknown key 'modle' in train (did you mean 'model'?)\n"
      "job.yaml:4:18: 'format' of 'data' of train must be mnist | idx | tfrecord | synthetic, not "
      "text "
      "'minst' (did you mean 'mnist'?)\n"
      "job.yaml:4:34: unknown key 'shufle' in 'data' of train (did you mean 'shuffle'?)\n"
      "job.yaml:5:21: 'type' of 'optimizer' of train must be sgd | adam | adamw | adagrad | "
      "rmsprop, not text 'adm' (did you mean 'adam'?)\n"
      "job.yaml:5:41: 'learning_rate' of 'optimizer' of train must be a number from 0 to 1000, "
      "not text 'fast'\n"
      "job.yaml:6:10: 'steps' of train must be a whole number from 1 to 1000000000000000, not the "
      "number 0\n"
      "job.yaml:7:13: 'metrics' of train must be accuracy | top5_accuracy | auc | mse | mae | "
      "loss, not text 'acuracy' (did you mean 'accuracy'?)\n"
      "job.yaml:8:15: 'checkpoint' of train has both 'every_steps' and 'every_secs'; keep one of "
      "them\n"
      "job.yaml:9:14: 'staleness' of train needs 'strategy: bounded'");
}

TEST(TrainSectionTest, DataRequiresFormatAndPath) {
  EXPECT_THAT(MistakesOf(Job("model: a, steps: 1")), HasSubstr("train lacks 'data'"));
  EXPECT_THAT(MistakesOf(Job("model: a, steps: 1, data: {}")),
              HasSubstr("'data' of train lacks 'format'"));
  EXPECT_THAT(MistakesOf(Job("model: a, steps: 1, data: ")),
              HasSubstr("'data' of train lacks 'format'"));
  EXPECT_THAT(MistakesOf(Job("model: a, steps: 1, data: {format: idx}")),
              HasSubstr("'data' of train lacks 'path'"));
  EXPECT_EQ(MistakesOf(Job("model: a, steps: 1, data: [x]")),
            "job.yaml:2:35: 'data' of train must be a map, not a list");
  EXPECT_THAT(MistakesOf("name: a\ntrain:\n"), HasSubstr("train lacks 'model'"));
}

TEST(TrainSectionTest, KeysOfDataBelongToItsFormat) {
  const auto mistakes = [](const std::string& data) {
    return MistakesOf(Job(absl::StrCat("model: a, steps: 1, data: {", data, "}")));
  };
  EXPECT_EQ(mistakes("format: synthetic, kind: images, shape: [3, 32, 32], classes: 100"), "");
  EXPECT_EQ(mistakes("format: synthetic, kind: tabular, features: 8, examples: 100"), "");
  EXPECT_EQ(mistakes("format: synthetic, kind: tokens, length: 8, vocabulary: 50, classes: 2"), "");
  EXPECT_EQ(mistakes("format: synthetic, kind: sequence, length: 8, features: 4, classes: 5"), "");
  EXPECT_EQ(mistakes("format: synthetic, split: test"), "");
  EXPECT_EQ(mistakes("format: idx, path: d, split: valid"), "");
  EXPECT_EQ(
      mistakes("format: mnist, path: d, classes: 5"),
      "job.yaml:2:69: 'classes' of 'data' of train belongs to 'format: tfrecord | synthetic', "
      "not to mnist; remove it");
  EXPECT_EQ(mistakes("format: synthetic, path: d"),
            "job.yaml:2:61: 'path' of 'data' of train belongs to 'format: mnist | idx | tfrecord', "
            "not to synthetic; remove it");
  EXPECT_EQ(mistakes("format: synthetic, kind: tokens, features: 5"),
            "job.yaml:2:79: 'features' of 'data' of train belongs to 'kind: tabular | sequence', "
            "not to tokens; remove it");
  EXPECT_THAT(mistakes("format: synthetic, vocabulary: 5"), HasSubstr("not to images"));
  EXPECT_THAT(mistakes("format: mnist, path: d, split: valid"),
              HasSubstr("must be train | test with 'format: mnist', not text 'valid'"));
  EXPECT_THAT(mistakes("format: mnist, path: {train: d}"),
              HasSubstr("'path' of 'data' of train must be text"));
  EXPECT_THAT(mistakes("format: synthetic, kind: tabular, features: {a: int64}"),
              HasSubstr("must be a whole number; only 'format: tfrecord' has a map"));
}

TEST(TrainSectionTest, RecordsAndTheirFeatures) {
  const auto with = [](const std::string& data) {
    return Job(absl::StrCat("model: a, steps: 1, data: {format: tfrecord, ", data, "}"));
  };
  const std::string features = "features: {image: {type: uint8, shape: [28, 28]}, label: int64}";
  EXPECT_EQ(MustParse(with("path: d/t-*, " + features)).train["data"].dump(),
            R"({"features":{"image":{"shape":[28,28],"type":"uint8"},"label":{"type":"int64"}},)"
            R"("format":"tfrecord","path":"/home/me/d/t-*","split":"train"})");
  EXPECT_EQ(MustParse(with("path: {train: d/a*, test: gs://b/x}, on_error: skip, classes: 10, " +
                           features))
                .train["data"]["path"]
                .dump(),
            R"({"test":"gs://b/x","train":"/home/me/d/a*"})");
  EXPECT_EQ(MistakesOf(with("path: d, target: y, vocabulary: 9, compression: gzip, features: "
                            "{x: {type: int64, shape: [5]}, y: float}, split: valid")),
            "");
  EXPECT_THAT(MistakesOf(with(features)), HasSubstr("lacks 'path'"));
  EXPECT_THAT(MistakesOf(with("path: d")), HasSubstr("needs 'features'"));
  EXPECT_THAT(MistakesOf(with("path: d, features: 5")), HasSubstr("needs 'features'"));
  EXPECT_THAT(MistakesOf(with("path: d, kind: images, " + features)),
              HasSubstr("belongs to 'format: synthetic', not to tfrecord"));
  const auto mistakes = [&](const std::string& map) {
    return MistakesOf(with("path: d, features: {" + map + "}"));
  };
  EXPECT_THAT(mistakes("label: int64"), HasSubstr("has 1 entries; expected two"));
  EXPECT_THAT(mistakes("image: {type: uint8, shape: [4]}, lable: int64"),
              HasSubstr("has no 'label' (did you mean 'lable'?)"));
  EXPECT_THAT(mistakes("image: unit8, label: int64"), HasSubstr("did you mean 'uint8'"));
  EXPECT_THAT(mistakes("image: {type: jpg, shape: [4, 4]}, label: int64"),
              HasSubstr("did you mean 'jpeg'"));
  EXPECT_THAT(mistakes("image: uint8, label: int64"), HasSubstr("lacks 'shape'"));
  EXPECT_THAT(mistakes("image: {type: uint8, shape: [0]}, label: int64"),
              HasSubstr("must be a list of 1 to 8"));
  EXPECT_THAT(mistakes("image: {type: uint8, shape: [4], shap: 1}, label: int64"),
              HasSubstr("unknown key 'shap'"));
  EXPECT_THAT(mistakes("image: [uint8], label: int64"), HasSubstr("must be a map"));
}

TEST(TrainSectionTest, KeysOfOptimizerAndScheduleBelongToTheirType) {
  const auto mistakes = [](const std::string& more) {
    return MistakesOf(Job(absl::StrCat(kData, ", ", more)));
  };
  for (const char* right :
       {"optimizer: {momentum: 0.9, nesterov: true}",
        "optimizer: {type: rmsprop, momentum: 0.9, decay: 0.9}",
        "optimizer: {type: adam, beta1: 0.8, beta2: 0.9, epsilon: 1e-6}", "optimizer: {}",
        "schedule: {warmup_steps: 5}", "schedule: {type: step, decay_steps: 5, decay_rate: 0.5}",
        "schedule: {type: cosine, end_learning_rate: 0.001}", "schedule: ", "optimizer: "}) {
    EXPECT_EQ(mistakes(right), "") << right;
  }
  EXPECT_THAT(mistakes("optimizer: {type: adam, momentum: 0.9}"),
              HasSubstr("'momentum' of 'optimizer' of train belongs to 'type: sgd | rmsprop', not "
                        "to adam; remove it"));
  EXPECT_THAT(mistakes("optimizer: {type: adam, decay: 0.9}"),
              HasSubstr("belongs to 'type: rmsprop', not to adam"));
  EXPECT_THAT(mistakes("optimizer: {epsilon: 0.1}"), HasSubstr("not to sgd; remove it"));
  EXPECT_THAT(mistakes("optimizer: {nesterov: true}"),
              HasSubstr("has 'nesterov: true' without 'momentum'"));
  EXPECT_THAT(mistakes("schedule: {decay_rate: 0.1}"), HasSubstr("not to constant; remove it"));
  EXPECT_THAT(mistakes("schedule: {type: step}"), HasSubstr("lacks 'decay_steps'"));
  EXPECT_EQ(mistakes("optimizer: {type: adm, beta1: 0.5}"),
            "job.yaml:2:77: 'type' of 'optimizer' of train must be sgd | adam | adamw | adagrad | "
            "rmsprop, not text 'adm' (did you mean 'adam'?)");
  EXPECT_EQ(mistakes("optimizer: 5"),
            "job.yaml:2:70: 'optimizer' of train must be a map, not the number 5");
}

TEST(TrainSectionTest, AShapeIsAListOfSizes) {
  const auto with = [](const std::string& shape) {
    return Job("model: a, steps: 1, data: {format: synthetic, shape: " + shape + "}");
  };
  EXPECT_EQ(MustParse(with("[3, 4]")).train["data"]["shape"].dump(), "[3,4]");
  EXPECT_THAT(
      MistakesOf(with("28")),
      HasSubstr("must be a list of 1 to 8 whole numbers from 1 to 1000000, not the number"));
  EXPECT_THAT(MistakesOf(with("[]")), HasSubstr("must be a list"));
  EXPECT_THAT(MistakesOf(with("[3, 0]")), HasSubstr("not of the number 0"));
  EXPECT_THAT(MistakesOf(with("[3, x]")), HasSubstr("not of text 'x'"));
  EXPECT_THAT(MistakesOf(with("[1, 1, 1, 1, 1, 1, 1, 1, 1]")),
              HasSubstr("must be a list of 1 to 8"));
}

TEST(TrainSectionTest, TheStrategyFitsTheRoles) {
  const auto mistakes = [](const std::string& strategy, const std::string& roles) {
    return MistakesOf(Job(absl::StrCat(kData, ", strategy: ", strategy), "roles: " + roles + "\n"));
  };
  EXPECT_EQ(
      mistakes("allreduce", "{worker: 2, ps: 1}"),
      "job.yaml:3:8: 'strategy: allreduce' does not use ps tasks; remove the role 'ps' or choose "
      "sync, async or bounded");
  EXPECT_EQ(mistakes("async", "{worker: 2}"),
            "job.yaml:3:8: 'strategy: async' needs ps tasks; add a role 'ps' or choose allreduce");
  EXPECT_EQ(mistakes("sync", "{chief: 1, evaluator: 1}"), "");
  EXPECT_EQ(mistakes("bounded", "{worker: 2, ps: 1}"), "");
  EXPECT_EQ(mistakes("allreduce", "{worker: 2}"), "");
  EXPECT_EQ(MustParse(Job(kData, "roles: {worker: 2, ps: 1}\n")).train["strategy"], "sync");
}

TEST(TrainSectionTest, ARoleMayHaveItsOwnCommand) {
  EXPECT_EQ(MistakesOf(Job(kData, "roles: {worker: 1, actor: {command: x}}\n")), "");
  EXPECT_THAT(MistakesOf(Job(kData, "roles: {worker: 1, actor: 1}\n")),
              HasSubstr("role 'actor' is not a role of the built-in trainer"));
  EXPECT_THAT(MistakesOf(Job(kData, "roles: {worker: 1}\ncommand: x\n")),
              HasSubstr("'command' and 'train' both set the program of every task"));
}

}  // namespace
}  // namespace muster::job
