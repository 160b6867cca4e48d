#include "platform/ssh/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/units.h"

namespace muster::ssh {
namespace {

constexpr int kNoLimit = std::numeric_limits<int>::max();

class PlacementSolver {
 public:
  PlacementSolver(const job::JobSpec& spec, const std::vector<job::HostSpec>& hosts)
      : spec_(spec), hosts_(hosts), held_(spec.roles.size() * hosts.size()), load_(hosts.size()) {
    const bool has_slots = std::any_of(hosts.begin(), hosts.end(), [](const job::HostSpec& host) {
      return host.slots.has_value();
    });
    for (const job::HostSpec& host : hosts) {
      const int slots = host.slots.value_or(has_slots ? 1 : 0);
      capacity_.push_back(slots == 0 ? kNoLimit : slots);
    }
  }

  absl::StatusOr<std::map<cluster::TaskId, size_t>> Run(
      const std::map<cluster::TaskId, std::string>& existing) {
    std::vector<size_t> order(spec_.roles.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(),
                          [this](size_t role) { return job::IsChiefRole(spec_.roles[role].name); });
    for (const size_t role : order) Keep(role, existing);
    std::vector<int> missing(spec_.roles.size());
    bool is_short = false;
    for (const size_t role : order) {
      for (int index = 0; index < spec_.roles[role].replicas; ++index) {
        if (result_.contains({spec_.roles[role].name, index}) || PlaceTask(role, index)) continue;
        ++missing[role];
        is_short = true;
      }
    }
    if (is_short) return TooFew(missing);
    return std::move(result_);
  }

 private:
  struct Held {             // tasks of one role on one host
    std::set<int> settled;  // kept from `existing`
    std::set<int> fresh;
    size_t size() const { return settled.size() + fresh.size(); }
  };

  Held& At(size_t role, size_t host) { return held_[role * hosts_.size() + host]; }
  const Held& At(size_t role, size_t host) const { return held_[role * hosts_.size() + host]; }
  bool HasRoom(size_t host) const { return load_[host] < capacity_[host]; }

  bool Names(size_t host, size_t role) const {
    const std::vector<std::string>& roles = hosts_[host].roles;
    return std::find(roles.begin(), roles.end(), spec_.roles[role].name) != roles.end();
  }
  bool Allows(size_t host, size_t role) const {
    return hosts_[host].roles.empty() || Names(host, role);
  }

  void Put(size_t role, int index, size_t host, bool settled = false) {
    (settled ? At(role, host).settled : At(role, host).fresh).insert(index);
    ++load_[host];
    result_[{spec_.roles[role].name, index}] = host;
  }

  void Keep(size_t role, const std::map<cluster::TaskId, std::string>& existing) {
    for (int index = 0; index < spec_.roles[role].replicas; ++index) {
      const auto found = existing.find({spec_.roles[role].name, index});
      if (found == existing.end()) continue;
      const auto host = std::find_if(
          hosts_.begin(), hosts_.end(),
          [&](const job::HostSpec& candidate) { return candidate.name == found->second; });
      if (host == hosts_.end()) continue;
      const auto at = static_cast<size_t>(host - hosts_.begin());
      if (Allows(at, role) && HasRoom(at)) Put(role, index, at, /*settled=*/true);
    }
  }

  bool PlaceTask(size_t role, int index) {
    using Rank = std::tuple<size_t, bool, int>;
    std::optional<size_t> best;
    Rank best_rank;
    for (size_t host = 0; host < hosts_.size(); ++host) {
      if (!Allows(host, role) || !HasRoom(host)) continue;
      const Rank rank(At(role, host).size(), !Names(host, role), load_[host]);
      if (best.has_value() && best_rank <= rank) continue;
      best = host;
      best_rank = rank;
    }
    if (!best.has_value()) best = MakeRoom(role, /*settled_too=*/false);
    if (!best.has_value()) best = MakeRoom(role, /*settled_too=*/true);
    if (!best.has_value()) return false;
    Put(role, index, *best);
    return true;
  }

  // Moves tasks of other roles until a host for `role` has room, by breadth-first search for the
  // shortest chain of moves: each task takes the place that the next one leaves, and the last takes
  // a free one. Returns the host, or nullopt if there is no chain.
  std::optional<size_t> MakeRoom(size_t role, bool settled_too) {
    struct Step {
      size_t host;                 // receives one more task
      size_t role;                 // of the task received
      std::optional<size_t> from;  // previous step, whose host gives up the task
    };
    std::vector<Step> steps;
    std::vector<bool> reached(hosts_.size()), left(spec_.roles.size());
    const auto reach = [&](size_t moved, std::optional<size_t> from) {
      for (size_t host = 0; host < hosts_.size(); ++host) {
        if (reached[host] || !Allows(host, moved)) continue;
        reached[host] = true;
        steps.push_back({host, moved, from});
      }
    };
    left[role] = true;
    reach(role, std::nullopt);
    for (size_t at = 0; at < steps.size(); ++at) {
      if (HasRoom(steps[at].host)) {
        // Executes the chain from its free end, so that every move finds room.
        for (size_t step = at; steps[step].from.has_value(); step = *steps[step].from) {
          Move(steps[step].role, steps[*steps[step].from].host, steps[step].host);
          at = *steps[step].from;
        }
        return steps[at].host;
      }
      for (size_t other = 0; other < spec_.roles.size(); ++other) {
        const Held& held = At(other, steps[at].host);
        if (left[other] || (settled_too ? held.size() : held.fresh.size()) == 0) continue;
        left[other] = true;
        reach(other, at);
      }
    }
    return std::nullopt;
  }

  // Moves the last task of a role. Prefers a new one to one kept from `existing`.
  void Move(size_t role, size_t from, size_t to) {
    Held& held = At(role, from);
    std::set<int>& tasks = held.fresh.empty() ? held.settled : held.fresh;
    const int index = *tasks.rbegin();
    tasks.erase(index);
    --load_[from];
    Put(role, index, to);
  }

  // Returns the slots of all hosts that allow a role, or nullopt if there is no such host.
  std::optional<int64_t> SlotsFor(size_t role) const {
    std::optional<int64_t> slots;
    for (size_t host = 0; host < hosts_.size(); ++host) {
      if (Allows(host, role)) slots = slots.value_or(0) + capacity_[host];
    }
    return slots;
  }

  // Describes that `missing[role]` tasks of each role cannot be placed.
  absl::Status TooFew(const std::vector<int>& missing) const {
    std::vector<std::string> few, none;
    for (size_t role = 0; role < spec_.roles.size(); ++role) {
      if (missing[role] == 0) continue;
      const std::string what = absl::StrCat(missing[role], " of '", spec_.roles[role].name, "'");
      const auto slots = SlotsFor(role);
      if (slots.has_value()) {
        few.push_back(absl::StrCat(what, " (the hosts that allow it have ",
                                   base::Plural(*slots, "slot"), ")"));
      } else {
        none.push_back(absl::StrCat(what, " (no host allows it)"));
      }
    }
    const int total = std::accumulate(missing.begin(), missing.end(), 0);
    std::string text =
        absl::StrCat(base::Plural(total, "task"), total == 1 ? " has" : " have", " no host: ");
    absl::StrAppend(&text, absl::StrJoin(few, ", "), few.empty() || none.empty() ? "" : ", ",
                    absl::StrJoin(none, ", "));
    if (!none.empty()) {
      absl::StrAppend(&text, "; add the role to 'roles' of a host, or add a host without 'roles'");
    }
    if (!few.empty()) {
      absl::StrAppend(&text,
                      "; add hosts, give them more slots (as in gpu1:4), or lower 'replicas'");
    }
    return absl::FailedPreconditionError(text);
  }

  const job::JobSpec& spec_;
  const std::vector<job::HostSpec>& hosts_;
  std::vector<int> capacity_;
  std::vector<Held> held_;
  std::vector<int> load_;
  std::map<cluster::TaskId, size_t> result_;
};

}  // namespace

absl::StatusOr<std::map<cluster::TaskId, size_t>> Place(
    const job::JobSpec& spec, const std::vector<job::HostSpec>& hosts,
    const std::map<cluster::TaskId, std::string>& existing) {
  if (hosts.empty()) {
    return absl::FailedPreconditionError(
        "the job has no hosts; list them with --hosts vm1,vm2, or under 'hosts' in the job file");
  }
  return PlacementSolver(spec, hosts).Run(existing);
}

}  // namespace muster::ssh
