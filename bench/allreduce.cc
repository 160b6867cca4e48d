// The cost of the relay for an all-reduce, beside Gloo on the loopback interface.
//
// usage: bench_allreduce [MEGABYTES] [ROUNDS]
//
// Tasks are separate processes on this machine. A round is one all-reduce of the whole. A local job
// uses Gloo's own sockets; a job on several machines uses the relay, which is measured without
// certificates and with them.
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "cluster/address.h"
#include "net/authority.h"
#include "train/torch/exchange/rendezvous.h"
#include "train/wire/grpc_transport.h"

namespace muster::train {
namespace {

constexpr int kFirstPort = 28'500;

struct Setting {
  int tasks;
  int64_t megabytes;
  int rounds;
  std::string folder;  // "": through the relay
  std::optional<wire::Tls> tls;
};

void RunTask(const Setting& setting, int rank, int result) {
  wire::GrpcTransport transport(setting.tls);
  RendezvousOptions options{.rank = rank,
                            .folder = setting.folder,
                            .transport = &transport,
                            .cluster = "bench",
                            .log = [](const std::string&) {}};
  for (int i = 0; i < setting.tasks; ++i) {
    options.tasks.push_back({"worker", i});
    options.addresses.push_back(absl::StrCat("127.0.0.1:", kFirstPort + i));
  }
  options.hello.set_cluster(base::Sha256Hex("bench"));
  options.hello.mutable_peer()->set_role("worker");
  options.hello.mutable_peer()->set_index(static_cast<uint32_t>(rank));
  const auto rendezvous = Rendezvous(options);
  if (!rendezvous.ok()) std::abort();
  std::vector<torch::Tensor> tensors = {torch::ones({setting.megabytes << 18})};
  std::vector<double> seconds;
  for (int round = 0; round < setting.rounds; ++round) {
    rendezvous->group->barrier()->wait();
    const absl::Time start = absl::Now();
    rendezvous->group->allreduce(tensors)->wait();
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
  }
  rendezvous->group->barrier()->wait();
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  if (rank == 0 && ::write(result, &median, sizeof(median)) != sizeof(median)) std::abort();
}

// Returns the median time of a round.
double Measure(const Setting& setting) {
  int ends[2] = {};
  if (::pipe(ends) != 0) std::abort();
  for (int rank = 0; rank < setting.tasks; ++rank) {
    if (::fork() != 0) continue;
    RunTask(setting, rank, ends[1]);
    std::_Exit(0);
  }
  for (int rank = 0; rank < setting.tasks; ++rank) {
    int status = 0;
    ::wait(&status);
    if (status != 0) std::abort();
  }
  double median = 0;
  if (::read(ends[0], &median, sizeof(median)) != sizeof(median)) std::abort();
  ::close(ends[0]);
  ::close(ends[1]);
  return median;
}

wire::Tls NewJob() {
  const auto authority = net::Authority::Create({.name = "bench"}).value();
  const auto issued = authority
                          .Issue({.name = cluster::kTaskTlsName,
                                  .hosts = absl::StrCat("DNS:", cluster::kTaskTlsName)})
                          .value();
  return {authority.certificate(), issued.certificate, issued.key};
}

int Main(int argc, char** argv) {
  const int64_t megabytes = argc > 1 ? std::atoi(argv[1]) : 100;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 12;
  char folder[] = "/tmp/muster-bench-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 1;
  const wire::Tls tls = NewJob();
  for (const int tasks : {2, 3}) {
    const double direct = Measure({tasks, megabytes, rounds, folder, std::nullopt});
    const double plain = Measure({tasks, megabytes, rounds, "", std::nullopt});
    const double secure = Measure({tasks, megabytes, rounds, "", tls});
    std::printf(
        "%d tasks, %ld MB   Gloo %.0f ms   relay %.0f ms (%.1f)   relay by TLS %.0f ms (%.1f)\n",
        tasks, static_cast<long>(megabytes), direct * 1e3, plain * 1e3, plain / direct,
        secure * 1e3, secure / direct);
  }
  return 0;
}

}  // namespace
}  // namespace muster::train

int main(int argc, char** argv) { return muster::train::Main(argc, argv); }
