// The address of a cluster and the user's credentials, from a kubeconfig file or a pod's service
// account.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "nlohmann/json.hpp"

namespace muster::k8s {

// A program that provides credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  // in addition to the environment of this process
  std::string install_hint;
  std::string interactive_mode;
  bool provide_cluster_info = false;
  nlohmann::json cluster_config;  // of the cluster's `extensions`; null: none
};

// Inline data, or a file that is read again regularly because it may be replaced.
struct DataOrFile {
  std::string data;
  std::string file;

  bool empty() const { return data.empty() && file.empty(); }
};

struct User {
  std::string name;
  DataOrFile token;
  DataOrFile certificate;  // PEM, like the key
  DataOrFile key;
  std::string username;
  std::string password;
  std::optional<ExecPlugin> exec;
  std::string impersonate;  // the user to act as
  std::vector<std::string> impersonate_groups;
};

struct ClusterConfig {
  std::string context;      // name; "" in a pod of the cluster
  std::string origin;       // for messages: "context 'dev' of /home/ada/.kube/config"
  std::string server;       // a URL without a trailing slash
  std::string authorities;  // PEM; "": those of the system
  std::string tls_server_name;
  std::string proxy;  // a URL; "": from the environment
  std::string ns = "default";
  User user;
};

// The mount point of the service account in a pod.
inline constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";

// Returns the absolute paths of the existing kubeconfig files, separated by colons as in
// KUBECONFIG, or "".
std::string KubeconfigFiles(const base::Variables& variables);

// Reads the context of that name ("": the current one) from the files in KUBECONFIG, or from
// ~/.kube/config. The first file that defines an entry wins, as for kubectl. Returns NotFound if
// there is no such file or context, and InvalidArgument with the position of every mistake in the
// sections that the context names. Messages contain no secrets.
absl::StatusOr<ClusterConfig> LoadKubeconfig(const base::Variables& variables,
                                             const std::string& context = "");

// Returns the cluster that this pod runs in, with the pod's service account. NotFound if this
// process does not run in a pod.
absl::StatusOr<ClusterConfig> InClusterConfig(const base::Variables& variables,
                                              const std::string& folder = kServiceAccountFolder);

// Uses a kubeconfig file if there is one or `context` is given, else InClusterConfig().
absl::StatusOr<ClusterConfig> FindCluster(const base::Variables& variables,
                                          const std::string& context = "",
                                          const std::string& folder = kServiceAccountFolder);

}  // namespace muster::k8s
