#include "k8s/request.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::k8s {
namespace {

// Rejects path segments that servers and proxies resolve as directories.
bool IsName(absl::string_view text) { return text != "." && text != ".."; }

}  // namespace

std::string ApiRequest::Resource() const {
  return absl::StrCat(kind.plural, call.subresource.empty() ? "" : "/", call.subresource);
}

std::string ApiRequest::Describe() const {
  std::string text = absl::StrCat(verb, " ", Resource());
  if (!kind.group.empty()) absl::StrAppend(&text, " of ", kind.group);
  if (!key.name.empty()) absl::StrAppend(&text, " '", key.name, "'");
  if (!key.ns.empty()) absl::StrAppend(&text, " in namespace '", key.ns, "'");
  return text;
}

absl::StatusOr<std::string> ApiRequest::Path() const {
  const bool one = verb == "get" || verb == "update" || verb == "patch" || verb == "delete";
  if ((one && key.name.empty()) || !IsName(key.name) || !IsName(key.ns)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot ", Describe(), ": the object's name ",
                                                   key.name.empty() ? "is missing" : "is invalid"));
  }
  std::string path = kind.group.empty() ? absl::StrCat("/api/", kind.version)
                                        : absl::StrCat("/apis/", kind.group, "/", kind.version);
  const auto add = [&](absl::string_view part) {
    absl::StrAppend(&path, "/", net::PercentEncode(part, /*keep_slash=*/false));
  };
  if (kind.namespaced && !key.ns.empty()) {
    add("namespaces");
    add(key.ns);
  }
  add(kind.plural);
  if (!key.name.empty() && verb != "create") add(key.name);
  if (!call.subresource.empty()) add(call.subresource);
  char separator = '?';
  const auto ask = [&](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&path, std::string(1, separator), name, "=",
                    net::PercentEncode(value, /*keep_slash=*/false));
    separator = '&';
  };
  for (const auto& [name, value] : query) ask(name, value);
  if (call.dry_run) ask("dryRun", "All");
  return path;
}

}  // namespace muster::k8s
