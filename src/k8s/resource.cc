#include "k8s/resource.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"

namespace muster::k8s {
namespace {

constexpr std::array kKinds = {
    kPods,
    kServices,
    kConfigMaps,
    kSecrets,
    kEvents,
    kServiceAccounts,
    kVolumeClaims,
    kNamespaces,
    kNodes,
    kDeployments,
    kLeases,
    kNetworkPolicies,
    kRoles,
    kRoleBindings,
    kClusterRoles,
    kClusterRoleBindings,
    kCustomResourceDefinitions,
    kValidatingWebhooks,
};
// Kubernetes' limit for the note of an event, in bytes.
constexpr size_t kMaxMessage = 1024;

// Truncates to at most `bytes`, at the boundary of a UTF-8 character.
std::string Truncated(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  size_t end = bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

// Returns a string of a map whose keys may contain slashes, or "".
std::string EntryOf(const Json& object, absl::string_view path, const std::string& name) {
  const Json* entries = Find(object, path);
  if (entries == nullptr || !entries->is_object()) return "";
  const auto found = entries->find(name);
  return found != entries->end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string ResourceKind::ApiVersion() const {
  return group.empty() ? std::string(version) : absl::StrCat(group, "/", version);
}

const ResourceKind* FindKind(absl::string_view api_version, absl::string_view kind) {
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& known) {
    return known.kind == kind && known.ApiVersion() == api_version;
  });
  return found == kKinds.end() ? nullptr : found;
}

const Json* Find(const Json& object, absl::string_view path) {
  const Json* at = &object;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const absl::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(name));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const Json& object, absl::string_view path) {
  const Json* found = Find(object, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int> NumberAt(const Json& object, absl::string_view path) {
  const Json* found = Find(object, path);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  constexpr auto kMax = std::numeric_limits<int>::max();
  if (found->is_number_unsigned() && found->get<uint64_t>() > kMax) return std::nullopt;
  const auto number = found->get<int64_t>();
  if (number < std::numeric_limits<int>::min() || number > kMax) return std::nullopt;
  return static_cast<int>(number);
}

int CountAt(const Json& object, absl::string_view path) {
  const Json* found = Find(object, path);
  if (found == nullptr || !found->is_number_integer()) return 0;
  if (found->is_number_unsigned()) {
    return static_cast<int>(std::min<uint64_t>(found->get<uint64_t>(), kMaxCount));
  }
  return static_cast<int>(std::clamp<int64_t>(found->get<int64_t>(), 0, kMaxCount));
}

std::optional<absl::Time> TimeAt(const Json& object, absl::string_view path) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, TextAt(object, path), &time, nullptr)) {
    return std::nullopt;
  }
  return time;
}

std::string NameOf(const Json& object) { return TextAt(object, "/metadata/name"); }
std::string UidOf(const Json& object) { return TextAt(object, "/metadata/uid"); }
std::string ResourceVersionOf(const Json& object) {
  return TextAt(object, "/metadata/resourceVersion");
}

ObjectKey KeyOf(const Json& object) {
  return {.ns = TextAt(object, "/metadata/namespace"), .name = NameOf(object)};
}

std::string LabelOf(const Json& object, const std::string& label) {
  return EntryOf(object, "/metadata/labels", label);
}

std::string AnnotationOf(const Json& object, const std::string& annotation) {
  return EntryOf(object, "/metadata/annotations", annotation);
}

std::string ControllerOf(const Json& object) {
  const Json* owners = Find(object, "/metadata/ownerReferences");
  if (owners == nullptr || !owners->is_array()) return "";
  for (const Json& owner : *owners) {
    const Json* controls = Find(owner, "/controller");
    if (controls != nullptr && *controls == true) return TextAt(owner, "/uid");
  }
  return "";
}

const Json* FindTrueCondition(const Json& status, absl::string_view type) {
  const Json* conditions = Find(status, "/conditions");
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  for (const Json& condition : *conditions) {
    if (TextAt(condition, "/type") == type && TextAt(condition, "/status") == "True") {
      return &condition;
    }
  }
  return nullptr;
}

bool IsBeingDeleted(const Json& object) {
  return !TextAt(object, "/metadata/deletionTimestamp").empty();
}

std::string Timestamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string MicroTimestamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

Reference ReferenceTo(const Json& object) {
  return {.api_version = TextAt(object, "/apiVersion"),
          .kind = TextAt(object, "/kind"),
          .key = KeyOf(object),
          .uid = UidOf(object),
          .resource_version = ResourceVersionOf(object)};
}

Json MakeEvent(const Reference& object, const Occurrence& occurrence) {
  const ObjectKey& key = object.key;
  // Events of cluster-scoped objects are stored in this namespace.
  const std::string ns = key.ns.empty() ? "default" : key.ns;
  const std::string time = Timestamp(occurrence.time);
  return {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"generateName", key.name + "."}, {"namespace", ns}}},
      {"involvedObject",
       {{"apiVersion", object.api_version},
        {"kind", object.kind},
        {"namespace", key.ns},
        {"name", key.name},
        {"uid", object.uid},
        {"resourceVersion", object.resource_version}}},
      {"type", occurrence.warning ? "Warning" : "Normal"},
      {"reason", occurrence.reason},
      {"message", Truncated(occurrence.message, kMaxMessage)},
      {"source", {{"component", occurrence.component}}},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1},
  };
}

}  // namespace muster::k8s
