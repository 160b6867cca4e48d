// TorchScript both ways: files made in Python, and files that Python reads.
#include <ATen/ATen.h>
#include <sys/resource.h>
#include <torch/nn.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/torch/model/export.h"
#include "train/torch/model/losses.h"
#include "train/torch/model/models.h"
#include "train/torch/model/script_model.h"

namespace muster::train {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

// Runs a Python program in `folder` and returns what it prints.
std::string Python(const std::string& folder, const std::string& program) {
  std::ofstream(base::JoinPath(folder, "program.py")) << "import torch\nfrom torch import nn\n"
                                                      << program;
  const std::string command =
      absl::StrCat("cd '", folder, "' && OMP_NUM_THREADS=1 /usr/bin/python3 program.py 2>&1");
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, count);
  }
  EXPECT_EQ(::pclose(pipe), 0) << output;
  return output;
}

std::vector<std::string> Names(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

ModelInput Pixels() { return {.inputs = {4}, .classes = 3}; }

constexpr char kGoodModel[] = R"(
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(8, 3)
        self.fc1.bias.requires_grad = False
    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.bn(self.fc1(x)))))
torch.manual_seed(1)
net = Net()
torch.jit.script(net).save("model.pt")
)";

TEST(ScriptModelTest, TrainsAModelMadeInPython) {
  base::TempDir dir;
  Python(dir.path(), kGoodModel);
  const auto model = MakeModel(base::JoinPath(dir.path(), "model.pt"), Pixels());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(CheckModel(**model, Pixels(), CrossEntropy()), absl::OkStatus());

  EXPECT_THAT(Names((*model)->Parameters()),
              ElementsAre("fc1.weight", "bn.weight", "bn.bias", "fc2.weight", "fc2.bias"));
  EXPECT_THAT(Names((*model)->Buffers()), ElementsAre("fc1.bias", "bn.running_mean",
                                                      "bn.running_var", "bn.num_batches_tracked"));

  at::manual_seed(1);
  const Batch batch = {at::rand({16, 4}), at::arange(16) % 3};
  double first = 0;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    const Tensor loss = CrossEntropy()((*model)->Forward(batch.inputs), batch);
    loss.backward();
    last = loss.item<double>();
    if (step == 0) first = last;
    at::NoGradGuard no_grad;
    for (auto& [name, parameter] : (*model)->Parameters()) {
      Tensor value = parameter;
      value.sub_(value.grad(), 0.1);
      value.mutable_grad().reset();
    }
  }
  EXPECT_LT(last, 0.95 * first);
  (*model)->SetTraining(false);
  EXPECT_TRUE((*model)->Forward(batch.inputs).equal((*model)->Forward(batch.inputs)));
}

TEST(ScriptModelTest, TheExportLoadsInPython) {
  base::TempDir dir;
  Python(dir.path(), kGoodModel);
  const auto model = LoadScriptModel(base::JoinPath(dir.path(), "model.pt"));
  ASSERT_TRUE(model.ok()) << model.status();
  {
    at::NoGradGuard no_grad;
    for (auto& [name, parameter] : (*model)->Parameters()) {
      Tensor value = parameter;
      value.fill_(0.5);
    }
  }
  const auto exported =
      ExportTorchScript(**model, at::ones({2, 4}), base::JoinPath(dir.path(), "trained.pt"));
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_TRUE(exported->any_batch_size);
  EXPECT_EQ(Python(dir.path(), R"(
m = torch.jit.load("trained.pt")
print(m.training, float(m.fc2.bias.sum()), m.fc1.bias.requires_grad, m.fc2.bias.requires_grad,
      list(m(torch.ones(5, 4)).shape))
)"),
            "False 1.5 False True [5, 3]\n");
}

TEST(ScriptModelTest, ReportsInvalidFiles) {
  base::TempDir dir;
  Python(dir.path(), absl::StrCat(kGoodModel, R"(
torch.save(net.state_dict(), "state_dict.pt")
torch.save(net.state_dict(), "legacy.pt", _use_new_zipfile_serialization=False)
class Two(Net):
    def forward(self, x, y):
        return self.fc1(x + y)
torch.jit.script(Two()).save("two_inputs.pt")
class Pair(Net):
    def forward(self, x):
        return x, self.fc1(x)
torch.jit.script(Pair()).save("pair.pt")
torch.jit.freeze(torch.jit.script(net.eval())).save("frozen.pt")
torch.jit.script(nn.ModuleDict({"fc": nn.Linear(4, 3)})).save("no_forward.pt")
)"));
  const auto error = [&](const std::string& name) {
    return std::string(MakeModel(base::JoinPath(dir.path(), name), Pixels()).status().message());
  };
  constexpr char kSave[] = "save it in Python with torch.jit.script(model).save(\"model.pt\")";
  EXPECT_THAT(
      error("state_dict.pt"),
      HasSubstr(absl::StrCat("state_dict.pt was written by torch.save and contains only values, "
                             "no program; ",
                             kSave)));
  for (const char* name : {"legacy.pt", "/program.py"}) {
    EXPECT_THAT(error(name), HasSubstr("is not a TorchScript file, or it is damaged"));
    EXPECT_THAT(error(name), HasSubstr(kSave));
  }
  EXPECT_THAT(error("two_inputs.pt"), HasSubstr("must take one tensor, the inputs; wrap"));
  EXPECT_THAT(error("pair.pt"),
              HasSubstr("must return one tensor, the outputs; it returns Tuple[Tensor, Tensor]"));
  EXPECT_THAT(error("frozen.pt"), HasSubstr("has no parameters to train; save it before "
                                            "torch.jit.freeze"));
  EXPECT_THAT(error("no_forward.pt"), HasSubstr("has no method 'forward'"));
  EXPECT_EQ(MakeModel(base::JoinPath(dir.path(), "none.pt"), Pixels()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(error("../"), HasSubstr("is not a file; pass a TorchScript file"));

  const std::string good = *base::ReadFile(base::JoinPath(dir.path(), "model.pt"));
  for (const size_t size : {size_t{0}, size_t{10}, good.size() / 2, good.size() - 5}) {
    std::ofstream(base::JoinPath(dir.path(), "cut.pt")) << good.substr(0, size);
    EXPECT_THAT(error("cut.pt"), HasSubstr("is not a TorchScript file, or it is damaged")) << size;
  }
}

TEST(ScriptModelTest, ModelAndDataThatDoNotFit) {
  base::TempDir dir;
  Python(dir.path(), kGoodModel);
  const auto model = LoadScriptModel(base::JoinPath(dir.path(), "model.pt"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(
      CheckModel(**model, {.inputs = {5}, .classes = 3}, CrossEntropy()).message(),
      StrEq("the model does not accept the data's inputs, [2, 5] of type F32 for a batch of "
            "two: mat1 and mat2 shapes cannot be multiplied (2x5 and 4x8)"));
}

// Inputs and the outputs they should give, for Python.
void WriteFloats(const std::string& path, const Tensor& tensor) {
  const Tensor floats = tensor.to(at::kFloat).contiguous();
  std::ofstream(path).write(static_cast<const char*>(floats.data_ptr()),
                            static_cast<std::streamsize>(floats.nbytes()));
}

TEST(ExportTest, PythonGetsTheSameOutputsForAnotherBatchSize) {
  base::TempDir dir;
  struct Case {
    std::string name;
    ModelInput input;
    Tensor inputs;  // three examples
  };
  const ModelInput images = {.inputs = {1, 12, 12}, .classes = 10};
  const std::vector<Case> cases = {
      {"mlp", images, at::rand({3, 1, 12, 12})},
      {"cnn", images, at::rand({3, 1, 12, 12})},
      {"resnet18", images, at::rand({3, 1, 12, 12})},
      {"embedding",
       {.inputs = {6}, .inputs_dtype = base::DType::kInt64, .classes = 4, .vocabulary = 9},
       at::randint(9, {3, 6}, at::kLong)},
  };
  for (const Case& c : cases) {
    const auto model = MakeModel(c.name, c.input);
    ASSERT_TRUE(model.ok()) << model.status();
    (*model)->Forward(c.inputs);  // Running means that are not the first ones.
    const auto exported = ExportTorchScript(**model, c.inputs.narrow(0, 0, 2),
                                            base::JoinPath(dir.path(), c.name + ".pt"));
    ASSERT_TRUE(exported.ok()) << exported.status();
    EXPECT_TRUE(exported->any_batch_size) << c.name;
    (*model)->SetTraining(false);
    at::NoGradGuard no_grad;
    WriteFloats(base::JoinPath(dir.path(), c.name + ".in"), c.inputs);
    WriteFloats(base::JoinPath(dir.path(), c.name + ".out"), (*model)->Forward(c.inputs));
  }
  EXPECT_EQ(Python(dir.path(), R"(
def floats(path):
    return torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.float32)
for name in ["mlp", "cnn", "resnet18", "embedding"]:
    m = torch.jit.load(name + ".pt")
    x = floats(name + ".in")
    x = x.view(3, 6).long() if name == "embedding" else x.view(3, 1, 12, 12)
    y = m(x)
    print(name, m.training, torch.allclose(y, floats(name + ".out").view_as(y), atol=1e-5))
m = torch.jit.load("resnet18.pt")
state = m.state_dict()
print(len(state), "layer2.0.downsample.1.running_var" in state, len(list(m.parameters())))
)"),
            "mlp False True\ncnn False True\nresnet18 False True\nembedding False True\n"
            "122 True 62\n");
}

struct FixedBatch : torch::nn::Module {
  FixedBatch() : fc(4, 3) { register_module("fc", fc); }
  Tensor forward(const Tensor& x) { return fc(x.view({x.size(0), -1})); }
  torch::nn::Linear fc;
};

struct Noise : FixedBatch {
  Tensor forward(const Tensor& x) { return fc(x) + at::rand({x.size(0), 3}); }
};

struct Frozen : FixedBatch {
  Frozen() { fc->bias.set_requires_grad(false); }
};

TEST(ModuleModelTest, FrozenParametersAreNotTrained) {
  const auto model = FromModule<Frozen>()();
  EXPECT_THAT(Names((*model)->Parameters()), ElementsAre("fc.weight"));
  EXPECT_THAT(Names((*model)->Buffers()), ElementsAre("fc.bias"));
}

TEST(ExportTest, ReportsAFixedBatchSize) {
  base::TempDir dir;
  const auto model = FromModule<FixedBatch>()();
  const std::string path = base::JoinPath(dir.path(), "fixed.pt");
  const auto exported = ExportTorchScript(**model, at::rand({2, 2, 2}), path);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_FALSE(exported->any_batch_size);
  EXPECT_TRUE(LoadScriptModel(path).ok());
}

TEST(ExportTest, KeepsTheOldFileWhenTheModelCannotBeTraced) {
  base::TempDir dir;
  const auto model = FromModule<Noise>()();
  const std::string path = base::JoinPath(dir.path(), "noise.pt");
  std::ofstream(path) << "old";
  const auto exported = ExportTorchScript(**model, at::rand({2, 4}), path);
  EXPECT_THAT(exported.status().message(),
              HasSubstr("cannot export the model as TorchScript: the outputs of the exported model "
                        "differ from the model's"));
  EXPECT_EQ(*base::ReadFile(path), "old");
}

// Parameters that are views of one buffer, as a trainer lays them out, are written once.
TEST(ExportTest, ViewsOfALargeBufferStaySmall) {
  base::TempDir dir;
  const auto model = MakeModel("mlp", {.inputs = {4}, .classes = 3});
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor buffer = at::zeros({1 << 20});
  int64_t used = 0;
  for (auto& [name, parameter] : (*model)->Parameters()) {
    Tensor view = buffer.narrow(0, used, parameter.numel()).view_as(parameter);
    used += parameter.numel();
    Tensor(parameter).set_data(view);
  }
  const std::string path = base::JoinPath(dir.path(), "views.pt");
  const auto exported = ExportTorchScript(**model, at::rand({2, 4}), path);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_LT(std::filesystem::file_size(path), used * 4 + 65536);
}

TEST(ExportTest, AFullDiskIsAnError) {
  base::TempDir dir;
  const auto model = FromModule<FixedBatch>()();
  const std::string path = base::JoinPath(dir.path(), "full.pt");
  const rlimit small = {1000, RLIM_INFINITY};
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto exported = ExportTorchScript(**model, at::rand({2, 4}), path);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(exported.status().message(), HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace muster::train
