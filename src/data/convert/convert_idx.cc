// Reads IDX files as examples.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/convert/convert.h"
#include "data/idx/idx_file.h"
#include "data/tfrecord/example.h"

namespace muster::data {
namespace {

template <typename To, typename From>
std::vector<To> Cast(const std::string& bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) {
    From value{};
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    values[i] = static_cast<To>(+value);  // + promotes int8, which is a character type
  }
  return values;
}

bool IsFraction(base::DType dtype) {
  return dtype == base::DType::kFloat32 || dtype == base::DType::kFloat64;
}

std::vector<int64_t> WholeNumbers(base::DType dtype, const std::string& bytes) {
  switch (dtype) {
    case base::DType::kInt8:
      return Cast<int64_t, int8_t>(bytes);
    case base::DType::kInt16:
      return Cast<int64_t, int16_t>(bytes);
    case base::DType::kInt32:
      return Cast<int64_t, int32_t>(bytes);
    default:
      return Cast<int64_t, uint8_t>(bytes);
  }
}

void AddNumbers(const char* name, base::DType dtype, const std::string& bytes,
                ExampleBuilder& builder) {
  if (dtype == base::DType::kFloat32) {
    builder.AddFloats(name, Cast<float, float>(bytes));
  } else if (dtype == base::DType::kFloat64) {
    builder.AddFloats(name, Cast<float, double>(bytes));
  } else {
    builder.AddInts(name, WholeNumbers(dtype, bytes));
  }
}

std::string Declared(const IdxFile& file, bool raw) {
  const std::string type = raw ? "uint8" : IsFraction(file.dtype()) ? "float" : "int64";
  if (file.shape().empty()) return type;
  return absl::StrCat("{type: ", type, ", shape: ", base::ToString(file.shape()), "}");
}

class Idx : public ExampleSource {
 public:
  Idx(std::unique_ptr<IdxFile> images, std::unique_ptr<IdxFile> labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}

  int64_t size() const override { return images_->size(); }

  absl::StatusOr<std::string> Example(int64_t index) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string image, Read(*images_, index));
    MUSTER_ASSIGN_OR_RETURN(const std::string label, Read(*labels_, index));
    if (raw()) {
      builder_.AddBytes("image", image);
    } else {
      AddNumbers("image", images_->dtype(), image, builder_);
    }
    AddNumbers("label", labels_->dtype(), label, builder_);
    return builder_.Finish();
  }

  std::string features() const override {
    return absl::StrCat("{image: ", Declared(*images_, raw()),
                        ", label: ", Declared(*labels_, /*raw=*/false), "}");
  }

 private:
  bool raw() const { return images_->dtype() == base::DType::kUint8 && !images_->shape().empty(); }

  static absl::StatusOr<std::string> Read(const IdxFile& file, int64_t index) {
    std::string bytes(static_cast<size_t>(file.example_bytes()), '\0');
    MUSTER_RETURN_IF_ERROR(file.Read(index, 1, bytes.data()));
    return bytes;
  }

  std::unique_ptr<IdxFile> images_;
  std::unique_ptr<IdxFile> labels_;
  ExampleBuilder builder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExampleSource>> IdxSource(const std::string& images,
                                                         const std::string& labels) {
  MUSTER_ASSIGN_OR_RETURN(IdxPair pair, OpenIdxPair(images, labels));
  return std::make_unique<Idx>(std::move(pair.images), std::move(pair.labels));
}

}  // namespace muster::data
