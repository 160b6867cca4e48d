// The MNIST CNN trained by a plain libtorch loop in one process.
//
// usage: bench_loop DATA STEPS; prints `step N` when step N is done
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct Net : torch::nn::Module {
  Net()
      : conv1(register_module("conv1",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 5).padding(2)))),
        conv2(register_module("conv2",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 5).padding(2)))),
        fc1(register_module("fc1", torch::nn::Linear(64 * 7 * 7, 1024))),
        fc2(register_module("fc2", torch::nn::Linear(1024, 10))) {}
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  torch::set_num_threads(1);
  torch::manual_seed(0);
  const auto data = torch::data::datasets::MNIST(argv[1]);
  const torch::Tensor images = (data.images() - 0.1307) / 0.3081;
  const torch::Tensor labels = data.targets().to(torch::kInt64);
  Net net;
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.001));
  const torch::Tensor order = torch::randperm(images.size(0));
  for (int step = 0; step < std::atoi(argv[2]); ++step) {
    const int64_t at = (step * 64) % (images.size(0) - 64);
    const torch::Tensor index = order.slice(0, at, at + 64);
    const torch::Tensor loss = torch::nn::functional::cross_entropy(
        net.forward(images.index_select(0, index)), labels.index_select(0, index));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::printf("step %d\n", step + 1);
    std::fflush(stdout);
  }
}
