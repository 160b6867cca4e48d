// The manifests that `muster operator install` applies: the files of deploy/, adapted to the
// options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

inline constexpr char kWebhookSecret[] = "muster-webhook";
inline constexpr char kWebhookConfiguration[] = "muster-operator";

// Authenticates the operator's webhook to the API server. All fields are PEM.
struct WebhookCertificate {
  std::string authority;  // the CA certificate
  std::string certificate;
  std::string key;
};

// Returns a new certificate, valid for ten years, issued by a new CA.
absl::StatusOr<WebhookCertificate> MakeWebhookCertificate(const std::string& ns, absl::Time now);
// Returns the certificate in the Secret of an earlier installation, or nullopt if it is invalid or
// expires within a year.
std::optional<WebhookCertificate> ReadWebhookCertificate(const nlohmann::json& secret,
                                                         const std::string& ns, absl::Time now);

struct InstallOptions {
  std::string ns;
  std::string image;
  std::string trainer_image;                  // passed to the operator
  std::string gang_scheduler = "none";        // none, volcano or scheduler-plugins
  std::optional<WebhookCertificate> webhook;  // nullopt = no webhook
  // Restricts the operator to this namespace: a Role replaces the ClusterRole, and cluster-scoped
  // objects are omitted. REQUIRES: the cluster has the job definitions; `webhook` is nullopt.
  bool namespaced = false;
};

// Returns the objects in the order in which they must be applied. Returns InvalidArgument for an
// invalid namespace name, image or gang scheduler.
absl::StatusOr<std::vector<nlohmann::json>> OperatorManifests(const InstallOptions& options);

// Returns only the CustomResourceDefinitions of both kinds of jobs.
absl::StatusOr<std::vector<nlohmann::json>> JobDefinitions();

}  // namespace muster::cli
