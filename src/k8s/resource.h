// Kinds of objects, and accessors for the members that all objects share.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace muster::k8s {

using Json = nlohmann::json;

// The strings outlive it: they are usually literals.
struct ResourceKind {
  absl::string_view group;  // "": core
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

// Returns the kind of those above that a manifest's apiVersion and kind name, or null.
const ResourceKind* FindKind(absl::string_view api_version, absl::string_view kind);

// Identifies an object of a kind.
struct ObjectKey {
  std::string ns;  // "": the client's default, or a cluster-scoped kind
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;
};

// Returns the member at a JSON pointer ("/metadata/name"), or null.
const Json* Find(const Json& object, absl::string_view path);
// Returns the string at `path`, or "".
std::string TextAt(const Json& object, absl::string_view path);
// Returns the integer at `path`, or nullopt if there is none or it does not fit.
std::optional<int> NumberAt(const Json& object, absl::string_view path);
// Returns the count at `path`, clamped to [0, kMaxCount], or 0. A status may hold any value.
inline constexpr int kMaxCount = 1'000'000;
int CountAt(const Json& object, absl::string_view path);
// Returns the time at `path`, or nullopt.
std::optional<absl::Time> TimeAt(const Json& object, absl::string_view path);

std::string NameOf(const Json& object);
std::string UidOf(const Json& object);
std::string ResourceVersionOf(const Json& object);
ObjectKey KeyOf(const Json& object);
// Return "" if the object has no such label or annotation.
std::string LabelOf(const Json& object, const std::string& label);
std::string AnnotationOf(const Json& object, const std::string& annotation);
// Returns the uid of the controlling owner, or "".
std::string ControllerOf(const Json& object);
// Returns the condition of that type in a status if it is True, else null.
const Json* FindTrueCondition(const Json& status, absl::string_view type);
// Returns whether the deletion of the object has been requested.
bool IsBeingDeleted(const Json& object);

// Formats a time as metav1.Time, "2024-05-01T12:00:00Z", or as MicroTime, which leases use.
std::string Timestamp(absl::Time time);
std::string MicroTimestamp(absl::Time time);

struct Occurrence {
  bool warning = false;
  std::string reason;     // one word: "FailedCreate"
  std::string message;    // truncated to 1,024 bytes, the limit of the server
  std::string component;  // the reporter: "muster-operator"
  absl::Time time;
};
// A reference to one version of an object.
struct Reference {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;
  std::string resource_version;
};
Reference ReferenceTo(const Json& object);
// Returns the Event object to create for an occurrence.
Json MakeEvent(const Reference& object, const Occurrence& occurrence);

}  // namespace muster::k8s
