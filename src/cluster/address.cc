#include "cluster/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::cluster {
namespace {

bool IsHostCharacter(char c) {
  return c != ',' && c != '[' && c != ']' && !absl::ascii_isspace(static_cast<unsigned char>(c)) &&
         !absl::ascii_iscntrl(static_cast<unsigned char>(c));
}

}  // namespace

std::optional<Address> ParseAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return std::nullopt;
  absl::string_view host = text.substr(0, colon);
  const absl::string_view digits = text.substr(colon + 1);

  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || !std::all_of(host.begin(), host.end(), IsHostCharacter)) return std::nullopt;
  // Without brackets, an IPv6 address and its port are ambiguous.
  if (!bracketed && host.find(':') != absl::string_view::npos) return std::nullopt;

  int port = 0;
  const bool all_digits = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
  if (!all_digits || !absl::SimpleAtoi(digits, &port)) return std::nullopt;
  if (port < 1 || port > 65535) return std::nullopt;
  return Address{std::string(host), port};
}

std::string MakeAddress(absl::string_view host, int port) {
  const bool is_v6 = host.find(':') != absl::string_view::npos;
  return absl::StrCat(is_v6 ? "[" : "", host, is_v6 ? "]:" : ":", port);
}

bool IsLoopback(absl::string_view host) {
  if (host == "localhost") return true;
  const std::string text(host);
  in_addr v4 = {};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return ::ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6 = {};
  return ::inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

int PortOf(absl::string_view address) {
  int port = 0;
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port))
    return 0;
  return port;
}

}  // namespace muster::cluster
