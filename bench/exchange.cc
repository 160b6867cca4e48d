// The speed of sending a model to the parameter servers and back, beside that of plain sockets.
//
// usage: bench_exchange [MEGABYTES] [ROUNDS]
//
// Tasks and servers are separate processes on this machine, connected by Unix sockets. A
// round is a step without computation: every task pushes all gradients and receives all values
// (SGD). The peer: as many pairs of processes, each pair with one socket each way, that send the
// same bytes both ways concurrently. Rounds of both are interleaved; medians are compared.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "train/ps/client.h"
#include "train/ps/coordinator.h"
#include "train/ps/server.h"
#include "train/wire/grpc_transport.h"

namespace muster::train {
namespace {

struct Setting {
  int tasks;
  int servers;
  int64_t megabytes;
  int rounds;
  std::string folder;

  std::vector<cluster::TaskId> Tasks() const {
    std::vector<cluster::TaskId> all = {{"chief", 0}};
    for (int i = 1; i < tasks; ++i) all.push_back({"worker", i - 1});
    return all;
  }
  std::vector<Variable> Variables() const {
    return {{{"w", base::DType::kFloat32, {megabytes * (1 << 20) / 4096, 1024}},
             Variable::Kind::kDense}};
  }
  std::vector<ShardPlan> Plans() const { return Place(Variables(), servers, 2 << 20); }
  std::string Address(int server) const {
    return absl::StrCat("unix:", folder, "/ps-", server, ".", tasks, ".", servers);
  }
  std::vector<std::string> Addresses() const {
    std::vector<std::string> all;
    for (int i = 0; i < servers; ++i) all.push_back(Address(i));
    return all;
  }
};

void Quiet(const std::string& /*line*/) {}

void RunServer(const Setting& setting, int index) {
  wire::GrpcTransport transport;
  ParameterServer server({{"ps", index}, setting.Tasks(), "bench", Quiet});
  auto listener = transport.Listen(setting.Address(index),
                                   [&](wire::Connection& connection, const wire::Caller& caller) {
                                     server.Serve(connection, caller);
                                   });
  if (!listener.ok()) std::abort();
  (void)server.Run(absl::Minutes(1), absl::Seconds(10));
}

class Zeros final : public ValueSource {
 public:
  Progress progress() const override { return {}; }
  std::vector<int64_t> cursors() const override { return {}; }
  absl::Span<const std::byte> Values(int) const override { return {}; }
  absl::Span<const std::byte> Slot(int, int) const override { return {}; }
};

// A barrier for all processes, in shared memory.
struct Barrier {
  std::atomic<int> arrived{0};
  void Wait(int all) {
    const int target = (arrived.fetch_add(1) / all + 1) * all;
    while (arrived.load() < target) std::this_thread::yield();
  }
};

struct Shared {
  Barrier barrier;
  double seconds[64];
};

wire::Frame HelloOf(const Setting& setting, int rank) {
  wire::Frame hello;
  hello.set_cluster(base::Sha256Hex("bench"));
  const cluster::TaskId self = setting.Tasks()[rank];
  hello.mutable_peer()->set_role(self.role);
  hello.mutable_peer()->set_index(self.index);
  hello.mutable_peer()->set_incarnation(rank + 1);
  return hello;
}

std::unique_ptr<PsCoordinator> Lead(const Setting& setting, wire::Transport& transport) {
  GenerationSpec spec;
  spec.limit = spec.total_steps = 1 << 20;
  spec.cursors.assign(setting.tasks, 0);
  spec.schedule = nullptr;
  auto coordinator = std::make_unique<PsCoordinator>(
      transport, PsCoordinator::Options{.hello = HelloOf(setting, 0),
                                        .addresses = setting.Addresses(),
                                        .variables = setting.Variables(),
                                        .plans = setting.Plans(),
                                        .spec = spec,
                                        .log = Quiet});
  const absl::Status active =
      coordinator->EnsureActive([] { return std::make_unique<Zeros>(); }, absl::Seconds(30));
  if (!active.ok()) std::fprintf(stderr, "%s\n", active.ToString().c_str()), std::abort();
  return coordinator;
}

// Pushes every bucket and receives all values.
void Exchange(PsClient& client, const std::vector<ShardShape>& shapes,
              const std::vector<std::vector<float>>& gradients, int round) {
  client.Begin(round, round);
  for (size_t server = 0; server < shapes.size(); ++server) {
    for (size_t bucket = 0; bucket < shapes[server].buckets.size(); ++bucket) {
      const Bucket& range = shapes[server].buckets[bucket];
      client.Push(static_cast<int>(server), static_cast<int>(bucket),
                  EncodeDense(wire::Frame::FLOAT32,
                              {{gradients[server].data() + range.offset,
                                static_cast<size_t>(range.elements) * sizeof(float), nullptr}}));
    }
  }
  if (!client.Wait().ok()) std::abort();
}

void RunTask(const Setting& setting, int rank, Shared& shared) {
  wire::GrpcTransport transport;
  std::unique_ptr<PsCoordinator> coordinator;
  if (rank == 0) coordinator = Lead(setting, transport);
  std::vector<std::vector<float>> values, gradients;
  std::vector<ShardShape> shapes;
  for (const ShardPlan& plan : setting.Plans()) {
    shapes.push_back(plan.shape);
    values.emplace_back(plan.shape.elements);
    gradients.emplace_back(plan.shape.elements, 0.5F);
  }
  PsClient client(transport, {.hello = HelloOf(setting, rank),
                              .addresses = setting.Addresses(),
                              .shapes = shapes,
                              .log = Quiet,
                              .receive = [&](int server, int bucket, const wire::Payload& payload) {
                                payload.Copy(
                                    0, payload.size(),
                                    values[server].data() + shapes[server].buckets[bucket].offset);
                              }});
  if (!client.Join(absl::Seconds(30)).ok()) std::abort();
  for (int round = 0; round < setting.rounds; ++round) {
    shared.barrier.Wait(setting.tasks);
    const absl::Time start = absl::Now();
    Exchange(client, shapes, gradients, round);
    shared.barrier.Wait(setting.tasks);
    if (rank == 0) shared.seconds[round] = absl::ToDoubleSeconds(absl::Now() - start);
  }
  if (rank == 0) (void)coordinator->EndJob();
}

// Sends the same bytes through plain sockets, one for each direction and task.
void RunPlain(const Setting& setting, int rank, bool server, const int (&sockets)[64][2][2],
              Shared& shared) {
  const size_t bytes = static_cast<size_t>(setting.megabytes) << 20;
  std::vector<char> out(bytes, 1), in(bytes);
  const int send = server ? sockets[rank][1][1] : sockets[rank][0][0];
  const int receive = server ? sockets[rank][0][1] : sockets[rank][1][0];
  for (int round = 0; round < setting.rounds; ++round) {
    shared.barrier.Wait(2 * setting.tasks);
    const absl::Time start = absl::Now();
    std::jthread sender([&] {
      for (size_t done = 0; done < bytes;) {
        const ssize_t n = ::write(send, out.data() + done, std::min<size_t>(bytes - done, 1 << 20));
        if (n <= 0) std::abort();
        done += static_cast<size_t>(n);
      }
    });
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = ::read(receive, in.data() + done, std::min<size_t>(bytes - done, 1 << 20));
      if (n <= 0) std::abort();
      done += static_cast<size_t>(n);
    }
    sender.join();
    shared.barrier.Wait(2 * setting.tasks);
    if (rank == 0 && !server) shared.seconds[round] = absl::ToDoubleSeconds(absl::Now() - start);
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns the median time of a round, without the first two.
double Measure(const Setting& setting, bool plain) {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) Shared;
  static int sockets[64][2][2];
  for (int i = 0; i < setting.tasks; ++i) {
    for (auto& pair : sockets[i]) {
      if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) std::abort();
      const int size = 4 << 20;
      for (const int fd : pair) ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }
  }
  int children = 0;
  const auto spawn = [&](auto work) {
    ++children;
    if (::fork() != 0) return;
    work();
    std::_Exit(0);
  };
  for (int i = 0; i < setting.tasks; ++i) {
    if (plain) {
      spawn([&] { RunPlain(setting, i, false, sockets, shared); });
      spawn([&] { RunPlain(setting, i, true, sockets, shared); });
    } else {
      spawn([&] { RunTask(setting, i, shared); });
    }
  }
  for (int i = 0; i < setting.servers && !plain; ++i) {
    spawn([&] { RunServer(setting, i); });
  }
  for (; children > 0; --children) {
    int status = 0;
    ::wait(&status);
    if (status != 0) std::abort();
  }
  for (int i = 0; i < setting.tasks; ++i) {
    for (const auto& pair : sockets[i]) ::close(pair[0]), ::close(pair[1]);
  }
  std::vector<double> seconds(shared.seconds + 2, shared.seconds + setting.rounds);
  ::munmap(memory, sizeof(Shared));
  return Median(seconds);
}

int Main(int argc, char** argv) {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const int64_t megabytes = argc > 1 ? std::atoi(argv[1]) : 100;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 12;
  char folder[] = "/tmp/muster-bench-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 1;
  std::printf("%-32s %s\n", "push + pull of one model", "GB/s both ways / plain sockets");
  for (const int tasks : {1, 2, 4}) {
    for (const int servers : {1, 2}) {
      const Setting setting{tasks, servers, megabytes, rounds, folder};
      std::vector<double> ours, plain;
      for (int i = 0; i < 3; ++i) {
        ours.push_back(Measure(setting, false));
        plain.push_back(Measure(setting, true));
      }
      const double bytes = 2e-9 * static_cast<double>(tasks * (megabytes << 20));
      const double ratio = Median(plain) / Median(ours);
      std::printf("%d %s, %d ps, %lld MB %15.2f / %.2f = %.2f %s\n", tasks,
                  tasks == 1 ? "worker " : "workers", servers, static_cast<long long>(megabytes),
                  bytes / Median(ours), bytes / Median(plain), ratio,
                  ratio >= 0.4 ? "ok" : "SHORT");
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace muster::train

int main(int argc, char** argv) { return muster::train::Main(argc, argv); }
