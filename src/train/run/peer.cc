#include "train/run/peer.h"

#include <unistd.h>

#include <climits>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "cluster/tf_config.h"

namespace muster::train {

std::string ClusterText(const Environment& environment) {
  return cluster::WriteTfConfig({.cluster = environment.cluster});
}

std::string ThisProcess() {
  static_assert(HOST_NAME_MAX < 256);
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return absl::StrCat("process ", ::getpid(), " on ", host);
}

wire::Frame HelloOf(const Environment& environment) {
  std::random_device random;
  wire::Frame hello;
  hello.set_kind(wire::Frame::HELLO);
  hello.set_cluster(base::Sha256Hex(ClusterText(environment)));
  wire::Peer& peer = *hello.mutable_peer();
  peer.set_role(environment.self.role);
  peer.set_index(static_cast<uint32_t>(environment.self.index));
  peer.set_attempt(static_cast<uint32_t>(environment.attempt));
  peer.set_incarnation((uint64_t{random()} << 32) | random());
  peer.set_process(ThisProcess());
  return hello;
}

}  // namespace muster::train
