// Creates objects in a cluster as fast as its API server accepts them. Checks only whether the
// creations succeed.
//
// usage: bench_kubernetes_post FILE CONNECTIONS
//
// FILE has one pod or service per line, as JSON. The cluster is that of the kubeconfig.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/variables.h"
#include "k8s/client.h"

namespace muster::bench {
namespace {

struct Item {
  const k8s::ResourceKind* kind = nullptr;
  std::string ns;
  std::string text;
};

std::vector<Item> ReadItems(const char* path) {
  std::vector<Item> items;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto object = nlohmann::json::parse(line);
    items.push_back({.kind = k8s::FindKind("v1", object["kind"].get<std::string>()),
                     .ns = object["metadata"]["namespace"],
                     .text = line});
  }
  return items;
}

int Run(const char* path, int connections) {
  const std::vector<Item> items = ReadItems(path);
  auto config = k8s::LoadKubeconfig(base::ProcessVariables());
  if (!config.ok()) return 1;
  auto client = k8s::Client::Create(*std::move(config), {.requests_per_second = 0});
  if (!client.ok()) return 1;
  std::atomic<size_t> next = 0;
  std::atomic<int> failed = 0;
  const auto post = [&] {
    for (size_t i = next++; i < items.size(); i = next++) {
      const auto answer = (*client)->transport().Send({.verb = "create",
                                                       .kind = *items[i].kind,
                                                       .key = {.ns = items[i].ns},
                                                       .body = items[i].text,
                                                       .idempotent = false});
      if (answer.ok()) continue;
      ++failed;
      std::fprintf(stderr, "%s\n", std::string(answer.status().message()).c_str());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < connections; ++i) threads.emplace_back(post);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return argc == 3 ? muster::bench::Run(argv[1], std::atoi(argv[2])) : 2;
}
