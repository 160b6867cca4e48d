#include "k8s/config.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "codec/map_reader.h"
#include "codec/yaml.h"
#include "net/http.h"

namespace muster::k8s {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;

constexpr int64_t kMaxConfigBytes = 4 << 20;
constexpr char kExecExtension[] = "client.authentication.k8s.io/exec";

struct File {
  std::string path;
  Node root;

  std::string folder() const { return path.substr(0, path.rfind('/') + 1); }
};

// An entry of one of a kubeconfig's lists: {name: N, MEMBER: value}.
struct Section {
  const File* file = nullptr;
  const Node* value = nullptr;
  std::string what;  // "cluster 'dev'"
};

bool LooksLikePem(absl::string_view text) { return absl::StrContains(text, "-----BEGIN "); }

std::vector<std::string> PathsOf(const base::Variables& variables) {
  const std::string listed = variables("KUBECONFIG");
  if (!listed.empty()) return absl::StrSplit(listed, ':', absl::SkipEmpty());
  const std::string home = variables("HOME");
  if (home.empty()) return {};
  return {base::JoinPath(home, ".kube/config")};
}

absl::StatusOr<File> ReadKubeconfig(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxConfigBytes));
  Diagnostics diagnostics(path);
  std::vector<Node> documents = codec::ParseYaml(text, {.bytes = kMaxConfigBytes}, diagnostics);
  if (diagnostics.empty() && documents.size() > 1) {
    diagnostics.Add(documents[1].mark, "a kubeconfig file must be one document");
  }
  if (diagnostics.empty() && !documents.empty()) {
    const MapReader is_map(documents[0], "a kubeconfig file", diagnostics);
  }
  MUSTER_RETURN_IF_ERROR(diagnostics.ToStatus());
  return File{path, documents.empty() ? Node{} : std::move(documents[0])};
}

// Reads the files that exist. Returns NotFound if none does.
absl::StatusOr<std::vector<File>> ReadKubeconfigs(const base::Variables& variables) {
  std::vector<File> files;
  const std::vector<std::string> paths = PathsOf(variables);
  for (const std::string& path : paths) {
    std::error_code error;
    auto file = ReadKubeconfig(std::filesystem::absolute(path, error));
    if (absl::IsNotFound(file.status())) continue;
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  if (!files.empty()) return files;
  return absl::NotFoundError(absl::StrCat(
      "no kubeconfig file (",
      paths.empty() ? "neither KUBECONFIG nor HOME is set" : absl::StrJoin(paths, ", "),
      "); set KUBECONFIG, or create ~/.kube/config with the tools of your cluster"));
}

class Kubeconfig {
 public:
  explicit Kubeconfig(std::vector<File> files) : files_(std::move(files)) {}

  const std::vector<File>& files() const { return files_; }

  std::string CurrentContext() const {
    for (const File& file : files_) {
      const Node* current = file.root.Find("current-context");
      if (current != nullptr && !current->scalar.empty()) return current->scalar;
    }
    return "";
  }

  std::vector<std::string> Names(const std::string& noun) const {
    std::vector<std::string> names;
    ForEach(noun, [&](const File&, const Node&, const std::string& name) {
      names.push_back(name);
      return false;
    });
    return names;
  }

  // `noun`: context, cluster or user.
  absl::StatusOr<Section> Get(const std::string& noun, const std::string& name,
                              const std::string& origin) const {
    Section section{.what = absl::StrCat(noun, " '", name, "'")};
    ForEach(noun, [&](const File& file, const Node& entry, const std::string& found) {
      if (found != name) return false;
      section.file = &file;
      section.value = entry.Find(noun);
      return true;
    });
    if (section.value != nullptr) return section;
    const std::vector<std::string> names = Names(noun);
    const std::string near = base::DidYouMean(name, names);
    std::string hint = near;
    if (near.empty() && !names.empty()) {
      hint = absl::StrCat("; available: ", absl::StrJoin(names, ", "));
    }
    return absl::NotFoundError(absl::StrCat(origin, ": there is no ", section.what, hint));
  }

 private:
  // Visits all entries until `visit` returns true.
  template <typename Visit>
  void ForEach(const std::string& noun, const Visit& visit) const {
    for (const File& file : files_) {
      const Node* list = file.root.Find(absl::StrCat(noun, "s"));
      if (list == nullptr) continue;
      for (const Node& entry : list->items) {
        const Node* name = entry.Find("name");
        if (name != nullptr && visit(file, entry, name->scalar)) return;
      }
    }
  }

  std::vector<File> files_;
};

// Reads the members of one section.
class SectionReader {
 public:
  explicit SectionReader(const Section& section)
      : section_(section),
        diagnostics_(section.file->path),
        reader_(*section.value, section.what, diagnostics_) {}

  MapReader& map() { return reader_; }
  std::string Text(const char* key) { return reader_.String(key).value_or(""); }

  // Resolves a path relative to the file that contains it.
  std::string Path(const char* key) {
    const std::string path = Text(key);
    return path.empty() ? "" : base::AbsolutePath(path, section_.file->folder());
  }

  // Returns the data of `key`-data, which is base64, or else the file that `key` names.
  DataOrFile Pem(const std::string& key) {
    const std::string data_key = key + "-data";
    const std::string encoded = Text(data_key.c_str());
    DataOrFile material;
    if (encoded.empty()) {
      material.file = Path(key.c_str());
    } else if (!absl::Base64Unescape(encoded, &material.data)) {
      Refuse(data_key, "is not base64; encode the file with `base64 -w0`");
    } else if (!LooksLikePem(material.data)) {
      Refuse(data_key, "is not a base64-encoded PEM file");
    }
    return material;
  }

  void Refuse(const std::string& key, absl::string_view why) {
    const Node* value = section_.value->Find(key);
    diagnostics_.Add(value == nullptr ? section_.value->mark : value->mark,
                     absl::StrCat("'", key, "' of ", section_.what, " ", why));
  }

  Diagnostics& diagnostics() { return diagnostics_; }
  absl::Status Finish() const { return diagnostics_.ToStatus(); }

 private:
  const Section& section_;
  Diagnostics diagnostics_;
  MapReader reader_;
};

absl::Status ReadPemFile(const std::string& what, const DataOrFile& material, std::string& pem) {
  pem = material.data;
  if (material.file.empty()) return absl::OkStatus();
  auto content = base::ReadFile(material.file, kMaxConfigBytes);
  if (!content.ok()) return base::Annotate(content.status(), what);
  if (!LooksLikePem(*content)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", material.file, " is not PEM"));
  }
  pem = *std::move(content);
  return absl::OkStatus();
}

nlohmann::json ExecConfigOf(const Node& cluster) {
  const Node* extensions = cluster.Find("extensions");
  if (extensions == nullptr) return nullptr;
  for (const Node& item : extensions->items) {
    const Node* name = item.Find("name");
    const Node* value = item.Find("extension");
    if (name != nullptr && value != nullptr && name->scalar == kExecExtension) {
      return codec::ToJson(*value);
    }
  }
  return nullptr;
}

absl::Status ReadCluster(const Section& section, ClusterConfig& config) {
  SectionReader reader(section);
  config.server = reader.Text("server");
  while (absl::EndsWith(config.server, "/")) config.server.pop_back();
  if (!net::IsSafeForSecrets(config.server)) {
    reader.Refuse("server", "must be an https:// URL, since credentials are sent to it");
  }
  config.tls_server_name = reader.Text("tls-server-name");
  config.proxy = reader.Text("proxy-url");
  if (reader.map().Bool("insecure-skip-tls-verify").value_or(false)) {
    reader.Refuse("insecure-skip-tls-verify",
                  "is not supported: the server's certificate is always verified; set "
                  "'certificate-authority', or 'tls-server-name' if the certificate is for another "
                  "name");
  }
  const DataOrFile authorities = reader.Pem("certificate-authority");
  MUSTER_RETURN_IF_ERROR(reader.Finish());
  return ReadPemFile(
      absl::StrCat(section.file->path, ": 'certificate-authority' of ", section.what), authorities,
      config.authorities);
}

ExecPlugin ReadExec(const Section& user, const Node& node, Diagnostics& diagnostics) {
  ExecPlugin plugin;
  MapReader reader(node, absl::StrCat("'exec' of ", user.what), diagnostics);
  plugin.api_version = reader
                           .Choice("apiVersion", {"client.authentication.k8s.io/v1",
                                                  "client.authentication.k8s.io/v1beta1"})
                           .value_or("");
  (void)reader.Require("apiVersion", "client.authentication.k8s.io/v1");
  (void)reader.Require("command", "a program");
  plugin.command = reader.String("command").value_or("");
  // As for kubectl: a path is relative to the kubeconfig file, and a bare name is found in PATH.
  if (absl::StrContains(plugin.command, '/')) {
    plugin.command = base::AbsolutePath(plugin.command, user.file->folder());
  }
  if (node.Find("args") != nullptr && node.Find("args")->kind != Node::Kind::kNull) {
    plugin.args = reader.StringList("args");
  }
  plugin.install_hint =
      std::string(absl::StripAsciiWhitespace(reader.String("installHint").value_or("")));
  plugin.interactive_mode = reader.String("interactiveMode").value_or("");
  plugin.provide_cluster_info = reader.Bool("provideClusterInfo").value_or(false);
  const Node* env = reader.Find("env");
  if (env == nullptr) return plugin;
  for (const Node& item : env->items) {
    MapReader variable(item, absl::StrCat("'env' of ", reader.what()), diagnostics);
    plugin.env[variable.String("name").value_or("")] = variable.String("value").value_or("");
  }
  return plugin;
}

absl::Status ReadUser(const Section& section, ClusterConfig& config) {
  User& user = config.user;
  SectionReader reader(section);
  user.token = {.data = reader.Text("token"), .file = reader.Path("tokenFile")};
  user.certificate = reader.Pem("client-certificate");
  user.key = reader.Pem("client-key");
  if (user.certificate.empty() != user.key.empty()) {
    reader.Refuse("client-certificate", "and 'client-key' must be set together");
  }
  user.username = reader.Text("username");
  user.password = reader.Text("password");
  user.impersonate = reader.Text("as");
  user.impersonate_groups = reader.map().StringList("as-groups");
  const Node* exec = reader.map().Find("exec");
  if (exec != nullptr && exec->kind != Node::Kind::kNull) {
    user.exec = ReadExec(section, *exec, reader.diagnostics());
  }
  for (const char* key : {"as-uid", "as-user-extra"}) {
    if (reader.map().Find(key) != nullptr) {
      reader.Refuse(key, "is not supported; use 'as' and 'as-groups' only");
    }
  }
  if (reader.map().Find("auth-provider") != nullptr) {
    reader.Refuse("auth-provider",
                  "is no longer supported by any client; use an 'exec' plugin, "
                  "such as gke-gcloud-auth-plugin or kubelogin");
  }
  if (!net::FitsHeader(user.token.data)) {
    reader.Refuse("token", "is not a token: it contains a space or a newline");
  }
  return reader.Finish();
}

}  // namespace

std::string KubeconfigFiles(const base::Variables& variables) {
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& path : PathsOf(variables)) {
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    if (std::filesystem::exists(absolute, error)) files.push_back(absolute.string());
  }
  return absl::StrJoin(files, ":");
}

absl::StatusOr<ClusterConfig> LoadKubeconfig(const base::Variables& variables,
                                             const std::string& context) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<File> files, ReadKubeconfigs(variables));
  const Kubeconfig kubeconfig(std::move(files));
  const std::string& first = kubeconfig.files().front().path;
  const std::string name = context.empty() ? kubeconfig.CurrentContext() : context;
  if (name.empty()) {
    return absl::NotFoundError(
        absl::StrCat(first,
                     ": no current context; choose one with --context or `kubectl config "
                     "use-context`; available: ",
                     absl::StrJoin(kubeconfig.Names("context"), ", ")));
  }
  ClusterConfig config;
  MUSTER_ASSIGN_OR_RETURN(const Section section, kubeconfig.Get("context", name, first));
  config.context = name;
  config.origin = absl::StrCat(section.what, " of ", section.file->path);
  SectionReader reader(section);
  const std::string cluster = reader.Text("cluster");
  config.user.name = reader.Text("user");
  if (const std::string named = reader.Text("namespace"); !named.empty()) config.ns = named;
  MUSTER_RETURN_IF_ERROR(reader.Finish());
  MUSTER_ASSIGN_OR_RETURN(const Section at, kubeconfig.Get("cluster", cluster, config.origin));
  MUSTER_RETURN_IF_ERROR(ReadCluster(at, config));
  if (config.user.name.empty()) return config;
  MUSTER_ASSIGN_OR_RETURN(const Section who,
                          kubeconfig.Get("user", config.user.name, config.origin));
  MUSTER_RETURN_IF_ERROR(ReadUser(who, config));
  if (config.user.exec.has_value()) config.user.exec->cluster_config = ExecConfigOf(*at.value);
  return config;
}

absl::StatusOr<ClusterConfig> InClusterConfig(const base::Variables& variables,
                                              const std::string& folder) {
  const std::string host = variables("KUBERNETES_SERVICE_HOST");
  const std::string port = variables("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return absl::NotFoundError(
        "not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  ClusterConfig config{.origin = "this pod's service account"};
  const bool bare_v6 = absl::StrContains(host, ':') && !absl::StartsWith(host, "[");
  config.server =
      absl::StrCat("https://", bare_v6 ? absl::StrCat("[", host, "]") : host, ":", port);
  config.user.name = "the pod's service account";
  config.user.token.file = base::JoinPath(folder, "token");
  const absl::Status read =
      ReadPemFile(config.origin, {.file = base::JoinPath(folder, "ca.crt")}, config.authorities);
  if (absl::IsNotFound(read)) {
    return absl::FailedPreconditionError(
        absl::StrCat(read.message(), "; the pod needs automountServiceAccountToken: true"));
  }
  MUSTER_RETURN_IF_ERROR(read);
  const auto ns = base::ReadFile(base::JoinPath(folder, "namespace"), kMaxConfigBytes);
  if (ns.ok()) config.ns = std::string(absl::StripAsciiWhitespace(*ns));
  return config;
}

absl::StatusOr<ClusterConfig> FindCluster(const base::Variables& variables,
                                          const std::string& context, const std::string& folder) {
  const bool in_pod = !variables("KUBERNETES_SERVICE_HOST").empty();
  if (in_pod && context.empty() && absl::IsNotFound(ReadKubeconfigs(variables).status())) {
    return InClusterConfig(variables, folder);
  }
  return LoadKubeconfig(variables, context);
}

}  // namespace muster::k8s
