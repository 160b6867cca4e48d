#include "job/host_spec.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "codec/diagnostics.h"

namespace muster::job {
namespace {

using codec::Quoted;

constexpr absl::string_view kForm = "expected a host such as vm1, me@gpu1:4 or [fe80::1]:2";
constexpr size_t kMaxHostNameLength = 255;

// Returns true if the text consists of letters, digits and characters of `others`.
bool HasOnly(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(others, c);
  });
}

// Parses the number of slots: "4" in "gpu1:4".
absl::StatusOr<int> ParseSlots(absl::string_view text) {
  int slots = 0;
  if (!absl::SimpleAtoi(text, &slots) || slots < 0 || slots > kMaxSlots) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(text), " is not a number of slots; expected a whole number from 0 (no limit) to ",
        kMaxSlots, ". Set a port in the job file: hosts: [{address: vm1, port: 2222}]"));
  }
  return slots;
}

}  // namespace

absl::Status CheckHostAddress(absl::string_view address) {
  if (!address.empty() && address.size() <= kMaxHostNameLength && address[0] != '-' &&
      HasOnly(address, ".-_:%")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(address), " is not a valid address; ", kForm));
}

absl::Status CheckHostUser(absl::string_view user) {
  if (!user.empty() && user.size() <= kMaxHostNameLength && user[0] != '-' &&
      HasOnly(user, ".-_@+\\")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(user), " is not a valid user name; ", kForm));
}

std::string HostName(absl::string_view address, int port) {
  return port == 0 ? std::string(address) : cluster::MakeAddress(address, port);
}

absl::StatusOr<HostSpec> ParseHost(absl::string_view text) {
  HostSpec host;
  absl::string_view rest = text;
  // The last '@' separates the user: a user name may contain one.
  if (const size_t at = rest.rfind('@'); at != absl::string_view::npos) {
    host.user = std::string(rest.substr(0, at));
    MUSTER_RETURN_IF_ERROR(CheckHostUser(host.user));
    rest.remove_prefix(at + 1);
  }
  absl::string_view slots;
  if (absl::StartsWith(rest, "[")) {
    const size_t end = rest.find(']');
    if (end == absl::string_view::npos || (end + 1 < rest.size() && rest[end + 1] != ':')) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(text), " is not a valid host; ", kForm));
    }
    host.address = std::string(rest.substr(1, end - 1));
    slots = rest.substr(end + 1);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    host.address = std::string(rest.substr(0, colon));
    slots = rest.substr(colon);
    if (std::count(rest.begin(), rest.end(), ':') > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(text),
          " is not a valid host; write an IPv6 address in brackets, as in [fe80::1]:2"));
    }
  }
  MUSTER_RETURN_IF_ERROR(CheckHostAddress(host.address));
  if (!slots.empty()) {
    MUSTER_ASSIGN_OR_RETURN(host.slots, ParseSlots(slots.substr(1)));
  }
  host.name = HostName(host.address, host.port);
  return host;
}

absl::StatusOr<std::vector<HostSpec>> ParseHosts(absl::string_view text) {
  codec::Diagnostics diagnostics("--hosts");
  std::vector<HostSpec> hosts;
  std::set<std::string> names;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    auto host = ParseHost(absl::StripAsciiWhitespace(part));
    if (!host.ok()) {
      diagnostics.Add({}, std::string(host.status().message()));
    } else if (!names.insert(host->name).second) {
      diagnostics.Add({}, absl::StrCat("host ", Quoted(host->name),
                                       " is listed twice; to run several tasks on it, write ",
                                       host->name, ":2"));
    } else {
      hosts.push_back(*std::move(host));
    }
  }
  if (hosts.size() > kMaxHosts) {
    diagnostics.Add({}, absl::StrCat(hosts.size(), " hosts; expected at most ", kMaxHosts));
  }
  MUSTER_RETURN_IF_ERROR(diagnostics.ToStatus());
  return hosts;
}

}  // namespace muster::job
