// Where a cluster is, and who we are there: from a kubeconfig file, or from inside the cluster.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "nlohmann/json.hpp"

namespace muster::k8s {

// A program that signs us in (client.authentication.k8s.io), as the clouds' clusters have one.
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  // besides this process's own
  std::string install_hint;
  std::string interactive_mode;
  bool provide_cluster_info = false;
  nlohmann::json cluster_config;  // what the cluster's section holds for it; mostly null
};

// Given as it is, or in a file which is read again now and then: it may be replaced.
struct Material {
  std::string data;
  std::string file;

  bool empty() const { return data.empty() && file.empty(); }
};

struct User {
  std::string name;
  Material token;
  Material certificate;  // PEM, as is the key
  Material key;
  std::string username;
  std::string password;
  std::optional<ExecPlugin> exec;
  std::string impersonate;  // whom the server is asked to take us for
  std::vector<std::string> impersonate_groups;
};

struct ClusterConfig {
  std::string context;      // its name; "" in a pod of the cluster
  std::string origin;       // for messages: "context 'dev' of /home/ada/.kube/config"
  std::string server;       // a URL, without a slash at its end
  std::string authorities;  // PEM; "": the system's
  std::string tls_server_name;
  std::string proxy;  // a URL; "": as the environment says
  std::string name_space = "default";
  User user;
};

// What a pod finds there.
inline constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";

// The files that the next two read and that are there, absolute, as KUBECONFIG lists them; "" when
// there are none.
std::string KubeconfigFiles(const Variables& variables);

// The context of that name, or the current one for "", of the files that KUBECONFIG lists
// (separated by colons; what stands in an earlier one wins), or of ~/.kube/config. NotFound: no
// such file, or no such context. InvalidArgument: every mistake in what the context names, with its
// place. Messages hold no secrets.
absl::StatusOr<ClusterConfig> LoadKubeconfig(const Variables& variables,
                                             const std::string& context = "");

// For who runs in a pod: the cluster's own address and the pod's service account. NotFound when
// this is no pod.
absl::StatusOr<ClusterConfig> InClusterConfig(const Variables& variables,
                                              const std::string& folder = kServiceAccountFolder);

// A kubeconfig file when there is one or a context is named, else the cluster that this runs in.
absl::StatusOr<ClusterConfig> FindCluster(const Variables& variables,
                                          const std::string& context = "",
                                          const std::string& folder = kServiceAccountFolder);

}  // namespace muster::k8s
