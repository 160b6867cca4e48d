#include "train/torch/model/models.h"

#include <torch/nn.h>

#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "train/torch/model/script_model.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

namespace nn = torch::nn;

constexpr int64_t kHidden1 = 256;
constexpr int64_t kHidden2 = 128;
constexpr int64_t kEmbeddingWidth = 32;
// Images up to this size keep their resolution in the first layer of a ResNet.
constexpr int64_t kSmallImage = 64;

// Layers compute in float32, whatever the type of the data.
torch::Tensor AsFloat(const torch::Tensor& inputs) { return inputs.to(torch::kFloat32); }

struct Logistic : nn::Module {
  Logistic(int64_t inputs, int64_t outputs) : fc(inputs, outputs) { register_module("fc", fc); }

  torch::Tensor forward(const torch::Tensor& inputs) { return fc(AsFloat(inputs).flatten(1)); }

  nn::Linear fc;
};

struct Mlp : nn::Module {
  Mlp(int64_t inputs, int64_t outputs)
      : fc1(inputs, kHidden1), fc2(kHidden1, kHidden2), fc3(kHidden2, outputs) {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("fc3", fc3);
  }

  torch::Tensor forward(const torch::Tensor& inputs) {
    torch::Tensor x = AsFloat(inputs).flatten(1);
    x = torch::relu(fc1(x));
    x = torch::relu(fc2(x));
    return fc3(x);
  }

  nn::Linear fc1, fc2, fc3;
};

struct Cnn : nn::Module {
  Cnn(const base::Shape& image, int64_t outputs)
      : conv1(nn::Conv2dOptions(image[0], 32, 5).padding(2)),
        conv2(nn::Conv2dOptions(32, 64, 5).padding(2)),
        fc1(64 * (image[1] / 4) * (image[2] / 4), 1024),
        fc2(1024, outputs) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(const torch::Tensor& inputs) {
    torch::Tensor x = torch::max_pool2d(torch::relu(conv1(AsFloat(inputs))), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc2(torch::relu(fc1(x.flatten(1))));
  }

  nn::Conv2d conv1, conv2;
  nn::Linear fc1, fc2;
};

nn::Conv2dOptions Conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false);
}

struct ResidualBlockImpl : nn::Module {
  ResidualBlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(Conv(in, out, 3, stride)), bn1(out), conv2(Conv(out, out, 3, 1)), bn2(out) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    if (stride == 1 && in == out) return;
    downsample = nn::Sequential(nn::Conv2d(Conv(in, out, 1, stride)), nn::BatchNorm2d(out));
    register_module("downsample", downsample);
  }

  torch::Tensor forward(const torch::Tensor& inputs) {
    torch::Tensor x = torch::relu(bn1(conv1(inputs)));
    x = bn2(conv2(x));
    return torch::relu(x + (downsample.is_empty() ? inputs : downsample->forward(inputs)));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample = nullptr;
};
TORCH_MODULE(ResidualBlock);

// Layers are named as in torchvision, so that its weights can be loaded.
struct ResNet18 : nn::Module {
  ResNet18(const base::Shape& image, int64_t outputs)
      : small(image[1] <= kSmallImage),
        conv1(small ? Conv(image[0], 64, 3, 1) : Conv(image[0], 64, 7, 2)),
        bn1(64),
        layer1(Layer(64, 64, 1)),
        layer2(Layer(64, 128, 2)),
        layer3(Layer(128, 256, 2)),
        layer4(Layer(256, 512, 2)),
        fc(512, outputs) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("layer1", layer1);
    register_module("layer2", layer2);
    register_module("layer3", layer3);
    register_module("layer4", layer4);
    register_module("fc", fc);
  }

  static nn::Sequential Layer(int64_t in, int64_t out, int64_t stride) {
    return nn::Sequential(ResidualBlock(in, out, stride), ResidualBlock(out, out, 1));
  }

  torch::Tensor forward(const torch::Tensor& inputs) {
    torch::Tensor x = torch::relu(bn1(conv1(AsFloat(inputs))));
    if (!small) x = torch::max_pool2d(x, 3, 2, 1);
    x = layer4->forward(layer3->forward(layer2->forward(layer1->forward(x))));
    return fc(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  bool small;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layer1, layer2, layer3, layer4;
  nn::Linear fc;
};

struct Embedding : nn::Module {
  Embedding(int64_t vocabulary, int64_t outputs)
      : embedding(nn::EmbeddingOptions(vocabulary, kEmbeddingWidth).sparse(true)),
        mlp(std::make_shared<Mlp>(kEmbeddingWidth, outputs)) {
    register_module("embedding", embedding);
    register_module("mlp", mlp);
  }

  torch::Tensor forward(const torch::Tensor& ids) {
    return mlp->forward(embedding(ids.to(torch::kInt64)).mean(1));
  }

  nn::Embedding embedding;
  std::shared_ptr<Mlp> mlp;
};

class EmbeddingModel : public ModuleModel<Embedding> {
 public:
  explicit EmbeddingModel(std::shared_ptr<Embedding> net)
      : ModuleModel(net), vocabulary_(net->embedding->options.num_embeddings()) {}

  torch::Tensor Forward(const torch::Tensor& ids) override {
    CheckIds(ids);
    return ModuleModel::Forward(ids);
  }

  std::vector<RowUse> RowsNeeded(const torch::Tensor& ids) override {
    CheckIds(ids);
    return {{"embedding.weight", ids.to(torch::kInt64)}};
  }

 private:
  void CheckIds(const torch::Tensor& ids) const {
    if (ids.numel() == 0) return;
    for (const torch::Tensor& id : {ids.min(), ids.max()}) {
      const auto value = id.item<int64_t>();
      TORCH_CHECK_VALUE(value >= 0 && value < vocabulary_, "the inputs have the id ", value,
                        ", but the vocabulary is 0 to ", vocabulary_ - 1);
    }
  }

  int64_t vocabulary_;
};

template <typename Net, typename... Args>
std::unique_ptr<Model> Build(Args... args) {
  return std::make_unique<ModuleModel<Net>>(std::make_shared<Net>(args...));
}

// A built-in model: the inputs that it needs, and its factory.
struct Entry {
  std::string name;
  std::string needs;
  std::function<bool(const ModelInput&)> fits;
  std::function<std::unique_ptr<Model>(const ModelInput&)> make;
};

bool IsNumbers(const ModelInput& input) {
  return IsFloating(input.inputs_dtype) && base::ElementsOf(input.inputs) > 0;
}

bool IsImage(const ModelInput& input, int64_t smallest) {
  return IsNumbers(input) && input.inputs.size() == 3 && input.inputs[1] >= smallest &&
         input.inputs[2] >= smallest;
}

bool IsIds(const ModelInput& input) {
  return !IsFloating(input.inputs_dtype) && input.inputs_dtype != base::DType::kBool &&
         input.inputs.size() == 1 && input.inputs[0] > 0;
}

const std::vector<Entry>& Entries() {
  static const auto& kEntries = *new std::vector<Entry>{
      {"logistic", "floating-point inputs of any shape", IsNumbers,
       [](const ModelInput& input) {
         return Build<Logistic>(base::ElementsOf(input.inputs), OutputsOf(input));
       }},
      {"mlp", "floating-point inputs of any shape", IsNumbers,
       [](const ModelInput& input) {
         return Build<Mlp>(base::ElementsOf(input.inputs), OutputsOf(input));
       }},
      {"cnn", "floating-point images [channels, height, width] of at least 4 by 4",
       [](const ModelInput& input) { return IsImage(input, 4); },
       [](const ModelInput& input) { return Build<Cnn>(input.inputs, OutputsOf(input)); }},
      {"resnet18", "floating-point images [channels, height, width]",
       [](const ModelInput& input) { return IsImage(input, 1); },
       [](const ModelInput& input) { return Build<ResNet18>(input.inputs, OutputsOf(input)); }},
      {"embedding", "integer ids [length]", IsIds,
       [](const ModelInput& input) -> std::unique_ptr<Model> {
         return std::make_unique<EmbeddingModel>(
             std::make_shared<Embedding>(input.vocabulary, OutputsOf(input)));
       }},
  };
  return kEntries;
}

bool IsFile(const std::string& name) {
  return absl::StrContains(name, "/") || absl::EndsWith(name, ".pt") ||
         absl::EndsWith(name, ".pth");
}

absl::Status CheckFit(const Entry& entry, const ModelInput& input) {
  if (!entry.fits(input)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model '", entry.name, "' needs ", entry.needs, "; the data has ",
                     base::ToString(input.inputs), " of type ", base::ToString(input.inputs_dtype),
                     "; choose a model that fits the data"));
  }
  if (entry.name == "embedding" && input.vocabulary <= 0) {
    return absl::InvalidArgumentError(
        "the model 'embedding' needs the number of ids, which the data does not define");
  }
  if (OutputsOf(input) <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("the targets ", base::ToString(input.targets),
                                                   " have no elements; there is nothing to learn"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> BuiltInModels() {
  std::vector<std::string> names;
  for (const Entry& entry : Entries()) names.push_back(entry.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const std::string& name_or_file,
                                                 const ModelInput& input) {
  if (IsFile(name_or_file)) return LoadScriptModel(name_or_file);
  for (const Entry& entry : Entries()) {
    if (entry.name != name_or_file) continue;
    MUSTER_RETURN_IF_ERROR(CheckFit(entry, input));
    std::unique_ptr<Model> model;
    const absl::Status made = CatchTorch([&] { model = entry.make(input); });
    if (!made.ok())
      return base::Annotate(made, absl::StrCat("cannot create the model '", entry.name, "'"));
    return model;
  }
  const std::vector<std::string> names = BuiltInModels();
  return absl::InvalidArgumentError(
      absl::StrCat("unknown model '", name_or_file, "'", base::DidYouMean(name_or_file, names),
                   "; the built-in ones are ", absl::StrJoin(names, ", "),
                   "; a TorchScript file is given by its path"));
}

}  // namespace muster::train
