// Kinds of objects, and what all objects have in common.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace muster::k8s {

using Json = nlohmann::json;

// Texts must outlive it: they are mostly literals.
struct ResourceKind {
  absl::string_view group;  // "": the core's
  absl::string_view version;
  absl::string_view plural;
  absl::string_view kind;
  bool namespaced = true;

  std::string ApiVersion() const;  // "apps/v1", "v1"
};

inline constexpr ResourceKind kPods{"", "v1", "pods", "Pod"};
inline constexpr ResourceKind kServices{"", "v1", "services", "Service"};
inline constexpr ResourceKind kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline constexpr ResourceKind kSecrets{"", "v1", "secrets", "Secret"};
inline constexpr ResourceKind kEvents{"", "v1", "events", "Event"};
inline constexpr ResourceKind kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};
inline constexpr ResourceKind kVolumeClaims{"", "v1", "persistentvolumeclaims",
                                            "PersistentVolumeClaim"};
inline constexpr ResourceKind kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr ResourceKind kNodes{"", "v1", "nodes", "Node", false};
inline constexpr ResourceKind kDeployments{"apps", "v1", "deployments", "Deployment"};
inline constexpr ResourceKind kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr ResourceKind kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies",
                                               "NetworkPolicy"};
inline constexpr ResourceKind kRoles{"rbac.authorization.k8s.io", "v1", "roles", "Role"};
inline constexpr ResourceKind kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings",
                                            "RoleBinding"};
inline constexpr ResourceKind kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles",
                                            "ClusterRole", false};
inline constexpr ResourceKind kClusterRoleBindings{
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false};
inline constexpr ResourceKind kCustomResourceDefinitions{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};
inline constexpr ResourceKind kValidatingWebhooks{"admissionregistration.k8s.io", "v1",
                                                  "validatingwebhookconfigurations",
                                                  "ValidatingWebhookConfiguration", false};

// The one of those above that a manifest's apiVersion and kind name; null when it is none of them.
const ResourceKind* FindKind(absl::string_view api_version, absl::string_view kind);

// Which object of a kind.
struct ObjectKey {
  std::string name_space;  // "": the client's own, or the kind has none
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;
};

// A member by its path (JSON pointer, "/metadata/name"); null when there is none.
const Json* Find(const Json& object, absl::string_view path);
// The text there; "" when there is none.
std::string TextAt(const Json& object, absl::string_view path);
// The whole number there; nullopt when there is none, or one that is no int.
std::optional<int> NumberAt(const Json& object, absl::string_view path);
// The count there, at most kMaxCount; 0 when there is none: a status is whatever was last written.
inline constexpr int kMaxCount = 1'000'000;
int CountAt(const Json& object, absl::string_view path);
// The time there; nullopt when there is none.
std::optional<absl::Time> TimeAt(const Json& object, absl::string_view path);

std::string NameOf(const Json& object);
std::string UidOf(const Json& object);
std::string ResourceVersionOf(const Json& object);
ObjectKey KeyOf(const Json& object);
// "" when it has no such label.
std::string LabelOf(const Json& object, const std::string& label);
std::string AnnotationOf(const Json& object, const std::string& annotation);
// The uid of the owner that controls it; "" when none does.
std::string ControllerOf(const Json& object);
// The condition of that type in an object's status that is True; null when none is.
const Json* FindTrueCondition(const Json& status, absl::string_view type);
// Somebody has asked for its deletion.
bool IsBeingDeleted(const Json& object);

// A time as objects hold it: "2024-05-01T12:00:00Z", or with microseconds as leases and newer
// events do.
std::string Timestamp(absl::Time time);
std::string MicroTimestamp(absl::Time time);

struct Occurrence {
  bool warning = false;
  std::string reason;     // one word: "FailedCreate"
  std::string message;    // is cut at the 1,024 bytes that the server takes
  std::string component;  // who reports: "muster-operator"
  absl::Time time;
};
// One version of an object, without the object.
struct Reference {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;
  std::string resource_version;
};
Reference ReferenceTo(const Json& object);
// The Event that tells of what happened to an object, to be created.
Json MakeEvent(const Reference& object, const Occurrence& occurrence);

}  // namespace muster::k8s
