#include "data/synthetic.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "data/input/random.h"
#include "data/synthetic_kinds.h"

namespace muster::data {
namespace {

constexpr int64_t kDefaultExamples = 10'000;
constexpr int64_t kTestShare = 5;
constexpr uint64_t kSeed = 0x6d7573746572;
constexpr int64_t kMaxElements = kMaxFeatureBytes / 8;  // of the widest element type

using Kind = std::unique_ptr<const SyntheticKind>;

class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(Kind kind, int64_t size, bool is_test)
      : kind_(std::move(kind)), size_(size), key_(Key(kSeed, is_test ? 1 : 0)) {}

  int64_t size() const override { return size_; }
  Feature inputs() const override { return kind_->inputs(); }
  Feature targets() const override { return kind_->targets(); }
  int64_t classes() const override { return kind_->classes(); }
  int64_t vocabulary() const override { return kind_->vocabulary(); }

  absl::Status Read(absl::Span<const int64_t> indices, Batch& out) const override {
    MUSTER_RETURN_IF_ERROR(Prepare(indices, out));
    char* input = out.inputs.as<char>();
    char* target = out.targets.as<char>();
    const int64_t input_bytes = inputs().bytes();
    const int64_t target_bytes = targets().bytes();
    for (const int64_t index : indices) {
      kind_->Make(Key(key_, static_cast<uint64_t>(index)), index, input, target);
      input += input_bytes;
      target += target_bytes;
    }
    return absl::OkStatus();
  }

 private:
  Kind kind_;
  int64_t size_;
  uint64_t key_;
};

// Returns the value of a key, or `fallback` if it is absent.
absl::StatusOr<int64_t> Value(absl::string_view key, int64_t value, int64_t fallback, int64_t min) {
  if (value == 0) return fallback;
  if (value >= min && value <= kMaxElements) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", key, "' of data must be a whole number from ",
                                                 min, " to ", kMaxElements, ", not ", value));
}

absl::StatusOr<Kind> MakeImages(const DataConfig& config) {
  const base::Shape shape = config.shape.empty() ? base::Shape{1, 28, 28} : config.shape;
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension >= 1 && dimension <= kMaxElements / elements) {
      elements *= dimension;
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "'shape' of data is ", base::ToString(shape),
        "; its dimensions must be at least 1, and their ", "product at most ", kMaxElements));
  }
  MUSTER_ASSIGN_OR_RETURN(const int64_t classes, Value("classes", config.classes, 10, 2));
  return std::make_unique<SyntheticImages>(shape, classes);
}

absl::StatusOr<Kind> MakeTable(const DataConfig& config) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t features, Value("features", config.features, 16, 1));
  MUSTER_ASSIGN_OR_RETURN(const int64_t classes, Value("classes", config.classes, 0, 2));
  return std::make_unique<SyntheticTable>(features, classes);
}

absl::StatusOr<Kind> MakeTokens(const DataConfig& config) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t length, Value("length", config.length, 16, 1));
  MUSTER_ASSIGN_OR_RETURN(const int64_t classes, Value("classes", config.classes, 2, 2));
  MUSTER_ASSIGN_OR_RETURN(const int64_t vocabulary,
                          Value("vocabulary", config.vocabulary, 1000, 2));
  if (vocabulary < classes) {
    return absl::InvalidArgumentError(absl::StrCat("'vocabulary' of data is ", vocabulary,
                                                   ", less than the ", classes,
                                                   " classes; every class needs its own id"));
  }
  return std::make_unique<SyntheticTokens>(length, vocabulary, classes);
}

absl::StatusOr<Kind> MakeSequence(const DataConfig& config) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t length,
                          Value("length", config.length, 32, SyntheticSequence::kFramesPerSymbol));
  MUSTER_ASSIGN_OR_RETURN(const int64_t features, Value("features", config.features, 8, 1));
  MUSTER_ASSIGN_OR_RETURN(const int64_t classes, Value("classes", config.classes, 6, 2));
  if (features > kMaxElements / length) {
    return absl::InvalidArgumentError(absl::StrCat("'length' ", length, " times 'features' ",
                                                   features, " of data is more than ", kMaxElements,
                                                   " numbers in one example; choose smaller ones"));
  }
  return std::make_unique<SyntheticSequence>(length, features, classes);
}

absl::StatusOr<Kind> MakeKind(const DataConfig& config) {
  if (config.kind.empty() || config.kind == "images") return MakeImages(config);
  if (config.kind == "tabular") return MakeTable(config);
  if (config.kind == "tokens") return MakeTokens(config);
  if (config.kind == "sequence") return MakeSequence(config);
  const std::vector<std::string> kinds = {"images", "tabular", "tokens", "sequence"};
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown kind '", config.kind, "' of synthetic data", base::DidYouMean(config.kind, kinds),
      "; expected one of ", absl::StrJoin(kinds, ", ")));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenSynthetic(const DataConfig& config) {
  if (config.split != "train" && config.split != "test") {
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic data has no split '", config.split, "'; it has train and test"));
  }
  MUSTER_ASSIGN_OR_RETURN(Kind kind, MakeKind(config));
  const int64_t examples = config.examples > 0 ? config.examples : kDefaultExamples;
  const bool is_test = config.split == "test";
  return std::make_shared<SyntheticDataset>(
      std::move(kind), is_test ? std::max<int64_t>(1, examples / kTestShare) : examples, is_test);
}

}  // namespace muster::data
