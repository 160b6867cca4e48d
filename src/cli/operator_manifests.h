// What `muster operator install` puts into a cluster: the files of deploy/, made to fit.
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

// By which the API server knows the operator's webhook; PEM.
struct WebhookCertificate {
  std::string authority;
  std::string certificate;
  std::string key;
};

// A new one, for ten years.
absl::StatusOr<WebhookCertificate> MakeWebhookCertificate(const std::string& name_space,
                                                          absl::Time now);
// That of the Secret which an earlier installation left; nullopt when it is not good for another
// year.
std::optional<WebhookCertificate> ReadWebhookCertificate(const nlohmann::json& secret,
                                                         const std::string& name_space,
                                                         absl::Time now);

struct InstallOptions {
  std::string name_space;
  std::string image;
  std::string trainer_image;                  // which the operator uses
  std::string gang_scheduler = "none";        // as the operator's option has it
  std::optional<WebhookCertificate> webhook;  // without it there is no webhook
  // For this namespace alone: with a Role instead of a ClusterRole, and nothing that concerns other
  // namespaces. The definitions must be there; there is no webhook.
  bool namespaced = false;
};

// In the order in which they must be applied. InvalidArgument when the namespace's name cannot be
// one, or an image no image.
absl::StatusOr<std::vector<nlohmann::json>> OperatorManifests(const InstallOptions& options);

// The definitions of both kinds of jobs alone.
absl::StatusOr<std::vector<nlohmann::json>> JobDefinitions();

}  // namespace muster::cli
