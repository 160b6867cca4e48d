// Default images of pods.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::manifest {

// Returns the image of the built-in trainer of that version of Muster.
inline std::string TrainerImage(absl::string_view version) {
  return absl::StrCat("muster-trainer:", version);
}
inline constexpr char kNotebookImage[] = "jupyter/tensorflow-notebook";

}  // namespace muster::manifest
