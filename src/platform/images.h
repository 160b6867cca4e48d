// Muster's own images, for the operator and the built-in trainer: made of the programs installed
// here and pushed to a repository of the user with skopeo or buildah, which have the user's
// credentials.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster::platform {

struct Image {
  std::string repository;             // "registry.example.com/ml"
  std::string name;                   // "muster-trainer"
  std::string version;                // of Muster, the tag
  std::vector<std::string> programs;  // names; the first is the entry point

  // Returns "registry.example.com/ml/muster-trainer:1.0".
  std::string Reference() const;
};

Image OperatorImage(const std::string& repository, const std::string& version);
Image TrainerImage(const std::string& repository, const std::string& version);

// Returns true if a field of `document` is the image's reference.
bool Mentions(const nlohmann::json& document, const Image& image);
// Returns the error for --image-repository beside `option`, which names an image.
absl::Status ExcludesRepository(absl::string_view option);

// Returns InvalidArgument unless `repository` is a registry with an optional path, without a scheme
// and a tag.
absl::Status CheckRepository(absl::string_view repository);

struct PushOptions {
  std::string folder;  // for temporary files, which need twice the size of an image
  // Returns the path of a program of Muster, or NotFound.
  std::function<absl::StatusOr<std::string>(const std::string& name)> find_program;
  std::function<void(const std::string&)> notify;  // shows progress
  std::function<bool()> cancelled;                 // polled; Cancelled once it returns true
};

// Returns the images that their registry does not have. Returns FailedPrecondition if neither
// skopeo nor buildah is installed, and Unavailable if the registry does not answer.
absl::StatusOr<std::vector<Image>> AbsentImages(const std::vector<Image>& images,
                                                const PushOptions& options);
// Makes and pushes the images that their registry does not have. Errors have the message of the
// tool and a remedy. Leaves nothing behind on this machine.
absl::Status PushImages(const std::vector<Image>& images, const PushOptions& options);

// Returns advice on the output of a tool that failed to push `image`, or "".
std::string RemedyFor(const Image& image, absl::string_view tool, absl::string_view output);

}  // namespace muster::platform
