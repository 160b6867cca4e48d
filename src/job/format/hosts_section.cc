#include "job/format/hosts_section.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/text/suggest.h"
#include "codec/map_reader.h"
#include "job/job_rules.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Mark;
using codec::Node;
using codec::Quoted;

class HostsReader {
 public:
  HostsReader(const std::string& working_dir, const JobSpec& spec, Diagnostics& diagnostics)
      : working_dir_(working_dir), spec_(spec), diagnostics_(diagnostics) {}

  std::vector<HostSpec> Read(const Node& node) {
    if (node.kind != Node::Kind::kSequence) {
      diagnostics_.Add(node.mark,
                       absl::StrCat("'hosts' must be a list such as [vm1, 'me@gpu1:4', {address: "
                                    "vm2, port: 2222}], not ",
                                    Describe(node)));
      return {};
    }
    if (node.items.size() > kMaxHosts) {
      diagnostics_.Add(node.mark, absl::StrCat("'hosts' has ", node.items.size(),
                                               " hosts; expected at most ", kMaxHosts));
      return {};
    }
    std::vector<HostSpec> hosts;
    for (const Node& item : node.items) {
      auto host = item.kind == Node::Kind::kScalar ? ReadText(item) : ReadMap(item);
      if (!host.has_value()) continue;
      if (names_.insert(host->name).second) {
        hosts.push_back(*std::move(host));
      } else {
        diagnostics_.Add(item.mark,
                         absl::StrCat("host ", Quoted(host->name),
                                      " is listed twice; to run several tasks on it, set 'slots'"));
      }
    }
    return hosts;
  }

 private:
  std::optional<HostSpec> ReadText(const Node& node) {
    auto host = ParseHost(node.scalar);
    if (!Check(host.status(), node.mark)) return std::nullopt;
    return *std::move(host);
  }

  std::optional<HostSpec> ReadMap(const Node& node) {
    HostSpec host;
    MapReader reader(node, "a host", diagnostics_);
    reader.Require("address", "the address for ssh");
    const auto address = reader.String("address");
    if (address && !Check(CheckHostAddress(*address), reader.Find("address")->mark)) {
      return std::nullopt;
    }
    host.address = address.value_or("");
    if (const auto user = reader.String("user")) {
      Check(CheckHostUser(*user), reader.Find("user")->mark);
      host.user = *user;
    }
    host.port = static_cast<int>(reader.Int("port", 1, kLastPort).value_or(0));
    if (const auto key = reader.String("key")) {
      host.key = base::AbsolutePath(*key, working_dir_);
    }
    if (const auto slots = reader.Int("slots", 0, kMaxSlots)) {
      host.slots = static_cast<int>(*slots);
    }
    host.roles = ReadRoles(reader);
    reader.Finish();
    if (!address) return std::nullopt;
    host.name = HostName(host.address, host.port);
    return host;
  }

  std::vector<std::string> ReadRoles(MapReader& reader) {
    std::vector<std::string> known;
    for (const RoleSpec& role : spec_.roles) known.push_back(role.name);
    std::vector<std::string> roles = reader.StringList("roles");
    for (const std::string& role : roles) {
      if (spec_.FindRole(role) != nullptr || known.empty()) continue;
      diagnostics_.Add(reader.Find("roles")->mark,
                       absl::StrCat(Quoted(role), " in 'roles' of a host is not a role of the job",
                                    base::DidYouMean(role, known),
                                    "; expected one of: ", absl::StrJoin(known, ", ")));
    }
    return roles;
  }

  // Returns true if the status is OK; otherwise reports it and returns false.
  bool Check(const absl::Status& status, Mark mark) {
    if (!status.ok()) diagnostics_.Add(mark, std::string(status.message()));
    return status.ok();
  }

  const std::string& working_dir_;
  const JobSpec& spec_;
  Diagnostics& diagnostics_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<HostSpec> ReadHosts(const Node& node, const std::string& working_dir,
                                const JobSpec& spec, Diagnostics& diagnostics) {
  return HostsReader(working_dir, spec, diagnostics).Read(node);
}

}  // namespace muster::job
