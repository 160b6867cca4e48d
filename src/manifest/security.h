// The security contexts of all pods that Muster creates. They protect the node: the image is the
// user's choice.
#pragma once

#include <optional>

#include "nlohmann/json.hpp"

namespace muster::manifest {

struct SecurityOptions {
  // Sets the fields that the Pod Security Standard `restricted` requires. An image that runs as
  // root needs `user` in addition.
  bool restricted = false;
  std::optional<int> user;      // the user and group of all containers; nullopt = the image's
  bool read_only_root = false;  // the containers write to mounted folders only
};

// Returns the securityContext of a pod, and of each of its containers.
nlohmann::ordered_json PodSecurity(const SecurityOptions& options);
nlohmann::ordered_json ContainerSecurity(const SecurityOptions& options);

}  // namespace muster::manifest
