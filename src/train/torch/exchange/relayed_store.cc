#include "train/torch/exchange/relayed_store.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace muster::train {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(5);

// An address as Gloo's TCP transport publishes it. The layout of gloo::transport::tcp::Address,
// which Gloo copies to the store as bytes.
struct GlooAddress {
  sockaddr_storage socket;
  ssize_t sequence;
};

// The addresses of one task's pairs, one for each of the other tasks in their order.
// Other values of the store (names, flags) do not have this size, or not this address family.
std::optional<std::vector<GlooAddress>> AddressesOf(const std::string& value) {
  if (value.empty() || value.size() % sizeof(GlooAddress) != 0) return std::nullopt;
  std::vector<GlooAddress> addresses(value.size() / sizeof(GlooAddress));
  std::memcpy(addresses.data(), value.data(), value.size());
  for (const GlooAddress& address : addresses) {
    if (address.socket.ss_family != AF_INET) return std::nullopt;
  }
  return addresses;
}

sockaddr_in& Inet(GlooAddress& address) { return reinterpret_cast<sockaddr_in&>(address.socket); }

// c10d reports failures as exceptions. CatchTorch() at the collective calls converts them.
template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(std::string(value.status().message()));
  return *std::move(value);
}

class RelayedStore final : public c10d::Store {
 public:
  RelayedStore(std::shared_ptr<KeyValue> values, Relay& relay, int rank)
      : values_(std::move(values)), relay_(relay), rank_(rank) {}

  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    const std::string text(value.begin(), value.end());
    if (auto addresses = AddressesOf(text)) Expose(*addresses);
    const absl::Status status = values_->Set(key, text);
    if (!status.ok()) throw std::runtime_error(std::string(status.message()));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    wait({key}, getTimeout());
    const std::string value = Redirected(OrThrow(values_->Get(key)).value_or(""));
    return {value.begin(), value.end()};
  }
  bool check(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      if (!OrThrow(values_->Get(key)).has_value()) return false;
    }
    return true;
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    const absl::Time deadline = base::Clock::Real().Now() + absl::FromChrono(timeout);
    while (!check(keys)) {
      if (base::Clock::Real().Now() > deadline)
        throw std::runtime_error("no answer from other tasks");
      absl::SleepFor(kPollInterval);
    }
  }
  int64_t add(const std::string&, int64_t) override { return Unsupported<int64_t>(); }
  bool deleteKey(const std::string&) override { return Unsupported<bool>(); }
  int64_t getNumKeys() override { return Unsupported<int64_t>(); }

 private:
  template <typename T>
  static T Unsupported() {
    throw std::logic_error("not supported by the store of an all-reduce");
  }

  void Expose(std::vector<GlooAddress>& addresses) {
    for (GlooAddress& address : addresses) {
      if (Inet(address).sin_addr.s_addr == LoopbackOf(rank_).s_addr) {
        relay_.Expose(::ntohs(Inet(address).sin_port));
      }
    }
  }

  // Replaces the address for this task among another task's addresses by one of the relay. Only the
  // task of the greater rank connects.
  std::string Redirected(std::string value) {
    auto addresses = AddressesOf(value);
    if (!addresses || rank_ == 0) return value;
    const auto slot = static_cast<size_t>(rank_ - 1);  // the list of a lower rank omits that rank
    if (slot >= addresses->size()) return value;
    sockaddr_in& mine = Inet((*addresses)[slot]);
    for (int rank = 0; rank < rank_; ++rank) {
      if (mine.sin_addr.s_addr != LoopbackOf(rank).s_addr) continue;
      const int port = OrThrow(relay_.Forward(rank, ::ntohs(mine.sin_port)));
      mine.sin_port = ::htons(static_cast<uint16_t>(port));
      std::memcpy(value.data(), addresses->data(), value.size());
      break;
    }
    return value;
  }

  const std::shared_ptr<KeyValue> values_;
  Relay& relay_;
  const int rank_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> NewRelayedStore(std::shared_ptr<KeyValue> values, Relay& relay,
                                                int rank) {
  return c10::make_intrusive<RelayedStore>(std::move(values), relay, rank);
}

}  // namespace muster::train
