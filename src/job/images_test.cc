#include "job/images.h"

#include "gtest/gtest.h"

namespace muster::job {
namespace {

TEST(ImagesTest, TrainerImages) {
  for (const char* image : {"muster-trainer", "muster-trainer:1.2", "registry:5000/muster-trainer",
                            "a/b/muster-trainer:1", "a/muster-trainer@sha256:00"}) {
    EXPECT_TRUE(IsTrainerImage(image)) << image;
  }
  for (const char* image : {"", "muster", "my-muster-trainer:1", "muster-trainer/other:1",
                            "registry:5000/x", "tensorflow/tensorflow"}) {
    EXPECT_FALSE(IsTrainerImage(image)) << image;
  }
}

TEST(ImagesTest, StockTensorflowImages) {
  for (const char* image : {"tensorflow/tensorflow:1.3.0", "docker.io/tensorflow/tensorflow",
                            "gcr.io/tensorflow/tensorflow:latest-gpu"}) {
    EXPECT_TRUE(IsStockTensorflowImage(image)) << image;
  }
  for (const char* image : {"me/tensorflow:1", "tensorflow/serving", "a/xtensorflow/tensorflow"}) {
    EXPECT_FALSE(IsStockTensorflowImage(image)) << image;
  }
}

}  // namespace
}  // namespace muster::job
