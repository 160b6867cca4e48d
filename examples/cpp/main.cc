// A model of our own, trained on MNIST by Muster: alone, or as every task of a job (job.yaml).
#include <muster/train.h>
#include <torch/torch.h>

namespace {

struct Net : torch::nn::Module {
  Net() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("dropout", dropout);
    register_module("fc", fc);
  }

  torch::Tensor forward(torch::Tensor images) {
    auto x = torch::max_pool2d(torch::relu(conv1(images)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc(dropout(x.flatten(1)));
  }

  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 16, 5).padding(2)};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(16, 32, 5).padding(2)};
  torch::nn::Dropout dropout{0.25};
  torch::nn::Linear fc{32 * 7 * 7, 10};
};

}  // namespace

int main(int argc, char** argv) {
  namespace train = muster::train;
  train::Experiment experiment;
  experiment.name = "digits";
  experiment.model = train::FromModule<Net>();
  experiment.data = train::OpenData({.format = "mnist", .path = "data/mnist"});
  experiment.loss = train::CrossEntropy();
  experiment.metrics = {train::Accuracy(), train::TopK(3)};
  experiment.run.seed = 1;
  experiment.run.save_checkpoints_steps = 250;
  experiment.train.max_steps = 500;
  experiment.train.batch_size = 64;
  experiment.train.optimizer = {.type = "adam", .learning_rate = 0.001};
  experiment.train.schedule = {.type = "cosine", .warmup_steps = 50, .decay_steps = 500};
  experiment.evaluate.exporters = {{.when = train::Exporter::When::kBest}};
  return train::Main(argc, argv, experiment);
}
