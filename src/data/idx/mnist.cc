#include "data/idx/mnist.h"

#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/text/terminal_text.h"
#include "data/idx/idx_dataset.h"

namespace muster::data {
namespace {

// Statistics of the 60,000 training images, with pixels from 0 to 1, as in PyTorch's examples.
constexpr float kMean = 0.1307f;
constexpr float kDeviation = 0.3081f;

struct Pair {
  std::string images;
  std::string labels;
};

IdxDataset::Table TableOf(float mean, float deviation) {
  IdxDataset::Table table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = (static_cast<float>(i) / 255 - mean) / deviation;
  }
  return table;
}

bool IsThere(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 || ::stat((path + ".gz").c_str(), &info) == 0;
}

Pair MnistPair(const std::string& folder, const std::string& split) {
  const std::string part = split == "test" ? "t10k" : split;
  return {base::JoinPath(folder, absl::StrCat(part, "-images-idx3-ubyte")),
          base::JoinPath(folder, absl::StrCat(part, "-labels-idx1-ubyte"))};
}

absl::Status CheckIsMnist(const Dataset& dataset, const std::string& folder) {
  const Feature inputs{base::DType::kFloat32, {1, 28, 28}};
  if (dataset.inputs() == inputs && dataset.targets() == Feature{base::DType::kInt64, {}}) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the files in ", folder, " are not MNIST: their inputs are ",
                   base::ToString(dataset.inputs().shape), ", not ", base::ToString(inputs.shape),
                   "; 'format: idx' reads other IDX files"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenMnist(const DataConfig& config) {
  if (config.split != "train" && config.split != "test") {
    return absl::InvalidArgumentError(
        absl::StrCat("MNIST has no split '", config.split, "'; it has train and test"));
  }
  const Pair files = MnistPair(config.path, config.split);
  for (const std::string& file : {files.images, files.labels}) {
    if (IsThere(file)) continue;
    return absl::NotFoundError(absl::StrCat("MNIST is not in ", config.path, ": there is no ", file,
                                            " (nor .gz); `muster data fetch mnist --to ",
                                            base::ShellQuote(config.path), "` downloads it"));
  }
  const IdxDataset::Options options{
      .table = TableOf(kMean, kDeviation), .examples = config.examples, .classes = 10};
  auto dataset = IdxDataset::Open(files.images, files.labels, options);
  if (!dataset.ok()) return dataset;
  const absl::Status status = CheckIsMnist(**dataset, config.path);
  if (!status.ok()) return status;
  return dataset;
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenIdx(const DataConfig& config) {
  if (config.split.empty() || config.split.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", config.split, "' cannot be a split: splits are prefixes of file names"));
  }
  Pair files{base::JoinPath(config.path, absl::StrCat(config.split, "-images.idx")),
             base::JoinPath(config.path, absl::StrCat(config.split, "-labels.idx"))};
  if (!IsThere(files.images)) {
    const Pair named_as_mnist = MnistPair(config.path, config.split);
    if (!IsThere(named_as_mnist.images)) {
      return absl::NotFoundError(absl::StrCat("there is no ", files.images, " (nor .gz), nor ",
                                              named_as_mnist.images, " (nor .gz); put the inputs ",
                                              "of the split there, and the targets beside them"));
    }
    files = named_as_mnist;
  }
  return IdxDataset::Open(files.images, files.labels,
                          {.table = TableOf(0, 1), .examples = config.examples});
}

}  // namespace muster::data
