// What the name of an image says about its contents.
#pragma once

#include "absl/strings/string_view.h"

namespace muster::job {

// The image of a TensorFlow server unless the job file names one.
inline constexpr char kTensorflowImage[] = "tensorflow/tensorflow:1.3.0";

// The entry point of the image of Muster's trainer.
inline constexpr char kTrainerProgram[] = "muster-trainer";

// Returns true for an image of Muster's trainer, in any registry and of any version.
bool IsTrainerImage(absl::string_view image);
// Returns true for one of TensorFlow's own images, whose entry point is not a server.
bool IsStockTensorflowImage(absl::string_view image);

}  // namespace muster::job
