#include "storage/hdfs/site.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "net/http.h"
#include "storage/xml.h"

namespace muster::storage {
namespace {

using Properties = std::map<std::string, std::string>;

constexpr int64_t kMaxBytes = 4 << 20;
constexpr int kMaxSubstitutions = 20;  // Hadoop's own limit

// Adds the properties of a file; later ones win. Returns NotFound if there is no such file.
absl::Status ReadFile(const std::string& path, Properties& properties) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxBytes));
  const auto xml = ParseXml(text);
  if (!xml.ok() || xml->name != "configuration") {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": ", xml.ok() ? "has no <configuration>" : std::string(xml.status().message())));
  }
  for (const XmlElement& element : xml->children) {
    if (element.name != "property") continue;
    properties[std::string(absl::StripAsciiWhitespace(element.Text("name")))] =
        std::string(absl::StripAsciiWhitespace(element.Text("value")));
  }
  return absl::OkStatus();
}

// Returns a value with ${name} replaced by that property; "" if it is not set.
std::string Get(const Properties& properties, const std::string& name) {
  const auto found = properties.find(name);
  std::string value = found == properties.end() ? "" : found->second;
  for (int i = 0; i < kMaxSubstitutions; ++i) {
    const size_t begin = value.find("${");
    const size_t end = begin == std::string::npos ? begin : value.find('}', begin);
    if (end == std::string::npos) break;
    const auto other = properties.find(value.substr(begin + 2, end - begin - 2));
    if (other == properties.end()) break;
    value.replace(begin, end + 1 - begin, other->second);
  }
  return value;
}

std::vector<std::string> GetList(const Properties& properties, const std::string& name) {
  std::vector<std::string> list;
  for (const absl::string_view word : absl::StrSplit(Get(properties, name), ',')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(word);
    if (!stripped.empty()) list.emplace_back(stripped);
  }
  return list;
}

// Splits host:port; an IPv6 address is in brackets.
std::pair<std::string, std::string> SplitPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  const size_t bracket = address.rfind(']');
  if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) {
    return {address, ""};
  }
  return {address.substr(0, colon), address.substr(colon + 1)};
}

// Returns the web server of the namenode whose RPC server is at `authority`. An address without a
// host, or the wildcard that the server binds to, is on the same host.
std::string WebServerOf(const std::string& authority, const std::string& web_address) {
  auto [host, port] = SplitPort(web_address);
  if (host.empty() || host == "0.0.0.0" || host == "[::]") host = SplitPort(authority).first;
  return port.empty() ? host : absl::StrCat(host, ":", port);
}

void AddNameservices(const Properties& properties, const std::string& key, HadoopSite& site) {
  for (const std::string& service : GetList(properties, "dfs.nameservices")) {
    std::vector<std::string>& nodes = site.namenodes[service];
    for (const std::string& node :
         GetList(properties, absl::StrCat("dfs.ha.namenodes.", service))) {
      const std::string part = absl::StrCat(".", service, ".", node);
      const std::string rpc = Get(properties, absl::StrCat("dfs.namenode.rpc-address", part));
      const std::string web = WebServerOf(rpc, Get(properties, absl::StrCat(key, part)));
      if (!web.empty()) nodes.push_back(web);
    }
    if (nodes.empty()) {
      const std::string web = Get(properties, absl::StrCat(key, ".", service));
      if (!web.empty()) nodes.push_back(web);
    }
    if (nodes.empty()) site.namenodes.erase(service);
  }
}

}  // namespace

absl::StatusOr<HadoopSite> ReadHadoopSite(const std::string& folder, std::optional<bool> https) {
  Properties properties;
  const std::string core = base::JoinPath(folder, "core-site.xml");
  if (const absl::Status read = ReadFile(core, properties); !read.ok()) {
    return absl::FailedPreconditionError(read.message());
  }
  const absl::Status read = ReadFile(base::JoinPath(folder, "hdfs-site.xml"), properties);
  if (!read.ok() && !absl::IsNotFound(read)) return absl::FailedPreconditionError(read.message());

  std::string uri = Get(properties, "fs.defaultFS");
  if (uri.empty()) uri = Get(properties, "fs.default.name");  // before Hadoop 2
  absl::string_view authority = uri;
  if (!absl::ConsumePrefix(&authority, "hdfs://")) {
    return absl::FailedPreconditionError(absl::StrCat(
        core, ": fs.defaultFS is '", net::ServerMessage(uri), "'; expected hdfs://host:port"));
  }
  HadoopSite site{.default_authority = std::string(authority.substr(0, authority.find('/'))),
                  .https = https.value_or(Get(properties, "dfs.http.policy") == "HTTPS_ONLY")};
  const std::string key = site.https ? "dfs.namenode.https-address" : "dfs.namenode.http-address";
  AddNameservices(properties, key, site);
  if (!site.namenodes.contains(site.default_authority)) {
    site.namenodes[site.default_authority] = {
        WebServerOf(site.default_authority, Get(properties, key))};
  }
  return site;
}

}  // namespace muster::storage
