#include "metrics/line_parser.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace muster::metrics {
namespace {

// Returns "STEP: NAME=VALUE …", or "" if the line has no measurement.
std::string Text(const std::optional<Measurement>& measurement) {
  if (!measurement) return "";
  std::string text = absl::StrCat(measurement->step, ":");
  for (const auto& [name, value] : measurement->values)
    absl::StrAppend(&text, " ", name, "=", value);
  return text;
}

std::string FromFile(absl::string_view line) { return Text(ParseMetricsLine(line)); }
std::string FromOutput(absl::string_view line) { return Text(OutputParser().Parse(line)); }

TEST(MetricsLineTest, HasOneValueOrSeveral) {
  EXPECT_EQ(FromFile(R"({"step": 10, "name": "loss", "value": 0.5})"), "10: loss=0.5");
  EXPECT_EQ(FromFile(R"( {"step": 10, "accuracy": 0.9, "loss": 0.5, "note": "x"} )"),
            "10: accuracy=0.9 loss=0.5");
  EXPECT_EQ(FromFile(R"({"step": 1e3, "loss": NaN})"), "1000: loss=nan");
  EXPECT_EQ(FromFile(R"({"step":1,"loss":-Infinity})"), "1: loss=nan");
  EXPECT_EQ(ParseMetricsLine(R"({"step": 1, "loss": 2, "time": 1.5})")->time,
            absl::UnixEpoch() + absl::Milliseconds(1500));
  EXPECT_EQ(ParseMetricsLine(R"({"step": 1, "loss": 2})")->time, std::nullopt);
}

TEST(MetricsLineTest, AnythingElseIsNone) {
  for (const char* line :
       {"", "{", "loss 5 step 1", "[1]", R"({"loss": 0.5})", R"({"step": -1, "loss": 1})",
        R"({"step": 1.5, "loss": 1})", R"({"step": "1", "loss": 1})", R"({"step": 1})",
        R"({"step": 1e300, "loss": 1})", R"({"step": 1, "name": "loss", "value": "low"})"}) {
    EXPECT_EQ(FromFile(line), "") << line;
  }
  EXPECT_EQ(
      FromFile(absl::StrCat(R"({"step": 1, "loss": 1, "x": ")", std::string(20000, 'x'), "\"}")),
      "");
}

TEST(OutputParserTest, ReadsTheReportsOfTrainingPrograms) {
  EXPECT_EQ(FromOutput("step 100/500, loss 0.1135, 1076 examples/s"), "100: loss=0.1135");
  EXPECT_EQ(FromOutput("INFO:tensorflow:loss = 0.30, step = 100 (1.2 sec)"), "100: loss=0.3");
  EXPECT_EQ(FromOutput("[2026-01-02 03:04:05] iter: 7 train/loss=1e-3 lr: 5.0e-05"),
            "7: train/loss=0.001 lr=5e-05");
  EXPECT_EQ(FromOutput("global_step=12 val_accuracy=.75."), "12: val_accuracy=0.75");
  EXPECT_EQ(FromOutput("step 3: loss nan"), "3: loss=nan");
  EXPECT_EQ(FromOutput("step=1,000 loss=1,234.5"), "1000: loss=1234.5");
  EXPECT_EQ(FromOutput("11/18/2026 13:00:00 - INFO - epoch 2: {'accuracy': 0.82}"),
            "2: accuracy=0.82");
  EXPECT_EQ(FromOutput("Saving dict for global step 201: accuracy = 0.97, loss = 0.1"),
            "201: eval/accuracy=0.97 eval/loss=0.1");
  EXPECT_EQ(FromOutput(R"({"step": 2, "loss": 4})"), "2: loss=4");
}

TEST(OutputParserTest, CountsStepsAcrossEpochs) {
  OutputParser keras;
  EXPECT_EQ(Text(keras.Parse("Epoch 1/5")), "");
  EXPECT_EQ(Text(keras.Parse("500/500 [=====] - 2s 4ms/step - loss: 0.3 - accuracy: 0.9")),
            "500: loss=0.3 accuracy=0.9");
  EXPECT_EQ(Text(keras.Parse("Epoch 2/5")), "");
  EXPECT_EQ(Text(keras.Parse("100/500 [=>...] - ETA: 1s - loss: 0.2")), "600: loss=0.2");

  OutputParser pytorch;
  EXPECT_EQ(Text(pytorch.Parse("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3")), "640: loss=2.3");
  EXPECT_EQ(Text(pytorch.Parse("Train Epoch: 2 [0/60000 (0%)]\tLoss: 0.5")), "60000: loss=0.5");

  OutputParser from_zero;
  EXPECT_EQ(Text(from_zero.Parse("Epoch 0:  50%|##  | 5/10 [00:00<00:00, 50it/s, train_loss=0.5]")),
            "5: train_loss=0.5");
  EXPECT_EQ(Text(from_zero.Parse("Epoch 1: 100%|####| 10/10 [00:00<00:00, train_loss=0.4]")),
            "20: train_loss=0.4");
  EXPECT_EQ(FromOutput("Epoch 3: loss=0.5"), "3: loss=0.5");
}

TEST(OutputParserTest, IgnoresOtherText) {
  for (const char* line : {"", "joined at step 0", "trained to step 500; checkpoints in /runs",
                           "loss 0.5", "lossless step 5", "Accuracy: 9012/10000 (90%) at step 5",
                           "step -3, loss 1", "step 99999999999999999999, loss 1",
                           "Epoch 900000000000000: 9/900000000000000 loss 1", "\x80\xff step\0"}) {
    EXPECT_EQ(FromOutput(line), "") << line;
  }
}

}  // namespace
}  // namespace muster::metrics
