#include "train/torch/model/script_model.h"

#include <caffe2/serialize/inline_container.h>
#include <sys/stat.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

constexpr char kHowToSave[] = "save it in Python with torch.jit.script(model).save(\"model.pt\")";

absl::Status CheckIsFile(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the model ", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model ", path, " is not a file; pass a TorchScript file"));
  }
  return absl::OkStatus();
}

// Distinguishes a TorchScript archive from other files of torch.save.
absl::Status CheckArchive(const std::string& path) {
  bool readable = false;
  bool has_code = false;
  const absl::Status read = CatchTorch([&] {
    caffe2::serialize::PyTorchStreamReader reader(path);
    readable = reader.hasRecord("data.pkl");
    has_code = reader.hasRecord("constants.pkl");
  });
  if (readable && has_code) return absl::OkStatus();
  if (readable) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model ", path, " was written by torch.save and contains only values, no program; ",
        kHowToSave));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the model ", path, " is not a TorchScript file, or it is damaged",
                   read.ok() ? "" : absl::StrCat(" (", read.message(), ")"), "; ", kHowToSave));
}

absl::Status CheckForward(const std::string& path, const torch::jit::Module& module) {
  const auto method = module.find_method("forward");
  if (!method) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model ", path, " has no method 'forward'; ", kHowToSave));
  }
  const c10::FunctionSchema& schema = method->function().getSchema();
  const auto& arguments = schema.arguments();  // the first is self
  int required = 0;
  for (size_t i = 1; i < arguments.size(); ++i) required += !arguments[i].default_value();
  const bool takes_tensor = arguments.size() >= 2 &&
                            arguments[1].type()->kind() == c10::TypeKind::TensorType &&
                            required <= 1;
  if (!takes_tensor) {
    return absl::InvalidArgumentError(
        absl::StrCat("forward of the model ", path,
                     " must take one tensor, the inputs; wrap the model in a module that does. "
                     "It is ",
                     c10::toString(schema)));
  }
  const auto& returns = schema.returns();
  const bool gives_tensor =
      returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::TensorType;
  if (!gives_tensor) {
    return absl::InvalidArgumentError(absl::StrCat(
        "forward of the model ", path, " must return one tensor, the outputs; it returns ",
        returns.empty() ? "nothing" : returns[0].type()->annotation_str(),
        "; wrap the model in a module that returns the part for the loss"));
  }
  return absl::OkStatus();
}

absl::Status CheckTrainable(const std::string& path, ScriptModel& model) {
  if (!model.Parameters().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model ", path,
                   " has no parameters to train; save it before torch.jit.freeze, with "
                   "requires_grad = True on the parameters to train"));
}

}  // namespace

torch::Tensor ScriptModel::Forward(const torch::Tensor& inputs) {
  const c10::IValue result = module_.forward({inputs});
  TORCH_CHECK_TYPE(result.isTensor(), "forward returned ", result.tagKind(),
                   " instead of a tensor");
  return result.toTensor();
}

NamedTensors ScriptModel::Parameters() {
  NamedTensors tensors;
  for (const auto& parameter : module_.named_parameters()) {
    if (parameter.value.requires_grad()) tensors.emplace_back(parameter.name, parameter.value);
  }
  return tensors;
}

NamedTensors ScriptModel::Buffers() {
  NamedTensors tensors;
  for (const auto& parameter : module_.named_parameters()) {
    if (!parameter.value.requires_grad()) tensors.emplace_back(parameter.name, parameter.value);
  }
  for (const auto& buffer : module_.named_buffers()) {
    tensors.emplace_back(buffer.name, buffer.value);
  }
  return tensors;
}

absl::StatusOr<std::unique_ptr<Model>> LoadScriptModel(const std::string& path) {
  MUSTER_RETURN_IF_ERROR(CheckIsFile(path));
  MUSTER_RETURN_IF_ERROR(CheckArchive(path));
  std::unique_ptr<ScriptModel> model;
  const absl::Status loaded = CatchTorch([&] {
    model = std::make_unique<ScriptModel>(torch::jit::load(path, torch::kCPU));
    model->SetTraining(true);
  });
  if (!loaded.ok()) {
    return base::Annotate(loaded, absl::StrCat("cannot load the model ", path, " (", kHowToSave,
                                               ", with a version of torch that is not newer)"));
  }
  MUSTER_RETURN_IF_ERROR(CheckForward(path, model->module()));
  MUSTER_RETURN_IF_ERROR(CheckTrainable(path, *model));
  return model;
}

}  // namespace muster::train
