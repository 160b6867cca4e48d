#include "job/images.h"

#include "absl/strings/match.h"

namespace muster::job {
namespace {

constexpr char kTrainerRepository[] = "muster-trainer";
constexpr char kTensorflowRepository[] = "tensorflow/tensorflow";

// Returns the image without its tag and digest. A colon before the last slash belongs to the port
// of the registry.
absl::string_view RepositoryOf(absl::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t slash = image.rfind('/');
  const size_t colon = image.find(':', slash == absl::string_view::npos ? 0 : slash);
  return image.substr(0, colon);
}

bool HasPath(absl::string_view image, absl::string_view path) {
  const absl::string_view repository = RepositoryOf(image);
  if (!absl::EndsWith(repository, path)) return false;
  const size_t before = repository.size() - path.size();
  return before == 0 || repository[before - 1] == '/';
}

}  // namespace

bool IsTrainerImage(absl::string_view image) { return HasPath(image, kTrainerRepository); }

bool IsStockTensorflowImage(absl::string_view image) {
  return HasPath(image, kTensorflowRepository);
}

}  // namespace muster::job
