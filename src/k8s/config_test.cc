#include "k8s/config.h"

#include <sys/stat.h>

#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::k8s {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kPem[] = "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n";

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() { variables_["HOME"] = home_.path(); }

  std::string Put(const std::string& name, const std::string& text) {
    const std::string path = base::JoinPath(home_.path(), name);
    EXPECT_TRUE(base::MakeDirectories(path.substr(0, path.rfind('/'))).ok());
    EXPECT_TRUE(base::ReplaceFile(path, text).ok());
    return path;
  }
  // Writes a file with one context, `dev`.
  std::string PutOne(const std::string& cluster, const std::string& user,
                     const std::string& context = "") {
    return Put(".kube/config",
               absl::StrCat("apiVersion: v1\nkind: Config\ncurrent-context: dev\n",
                            "contexts:\n- name: dev\n  context: {cluster: c, user: u", context,
                            "}\nclusters:\n- name: c\n  cluster: {", cluster,
                            "}\nusers:\n- name: u\n  user: {", user, "}\n"));
  }
  base::Variables variables() const {
    return [this](const std::string& name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? "" : found->second;
    };
  }
  absl::StatusOr<ClusterConfig> Load(const std::string& context = "") const {
    return LoadKubeconfig(variables(), context);
  }
  // Returns the error message, which must contain no secret.
  std::string Mistake() const {
    const auto config = Load();
    EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << config.status();
    EXPECT_THAT(config.status().message(), Not(HasSubstr("hunter2")));
    return std::string(config.status().message());
  }

  const base::TempDir home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(ConfigTest, ReadsAContext) {
  const std::string data = absl::Base64Escape(kPem);
  PutOne(absl::StrCat("server: 'https://1.2.3.4:6443/', certificate-authority-data: ", data,
                      ", tls-server-name: api.example, proxy-url: 'http://proxy:1'"),
         absl::StrCat("client-certificate-data: ", data, ", client-key-data: ", data,
                      ", as: eve, as-groups: [a, b]"),
         ", namespace: team");
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://1.2.3.4:6443");
  EXPECT_EQ(config->authorities, kPem);
  EXPECT_EQ(config->tls_server_name, "api.example");
  EXPECT_EQ(config->proxy, "http://proxy:1");
  EXPECT_EQ(config->ns, "team");
  EXPECT_EQ(config->user.name, "u");
  EXPECT_EQ(config->user.certificate.data, kPem);
  EXPECT_EQ(config->user.key.data, kPem);
  EXPECT_EQ(config->user.impersonate, "eve");
  EXPECT_THAT(config->user.impersonate_groups, ElementsAre("a", "b"));
  EXPECT_THAT(config->origin, HasSubstr("context 'dev' of "));
}

TEST_F(ConfigTest, PathsAreRelativeToTheirFile) {
  Put(".kube/pki/ca.crt", kPem);
  PutOne("server: https://x, certificate-authority: pki/ca.crt",
         "client-certificate: me.crt, client-key: /keys/me.key, tokenFile: ../token");
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->authorities, kPem);
  EXPECT_EQ(config->user.certificate.file, base::JoinPath(home_.path(), ".kube/me.crt"));
  EXPECT_EQ(config->user.key.file, "/keys/me.key");
  EXPECT_EQ(config->user.token.file, base::JoinPath(home_.path(), "token"));
}

TEST_F(ConfigTest, MergesSeveralFiles) {
  const std::string first = Put("a/one", R"(
current-context: dev
contexts: [{name: dev, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: first}}])");
  const std::string second = Put("b/two", R"(
current-context: other
contexts: [{name: other, context: {cluster: c, user: v}}]
clusters: [{name: c, cluster: {server: 'https://x', certificate-authority: ca.crt}}]
users: [{name: u, user: {token: second}}, {name: v, user: {token: third}}])");
  Put("b/ca.crt", kPem);
  variables_["KUBECONFIG"] = absl::StrCat(first, ":/nowhere/at/all::", second);
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->user.token.data, "first");
  EXPECT_EQ(config->authorities, kPem);
  EXPECT_EQ(Load("other")->user.token.data, "third");
}

TEST_F(ConfigTest, ReadsAPlugin) {
  PutOne(
      "server: https://x, extensions: [{name: client.authentication.k8s.io/exec, extension: "
      "{audience: z}}]",
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./sign-in, args: [a, '5'], "
      "env: [{name: N, value: V}], installHint: ' get it ', provideClusterInfo: true}");
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  const ExecPlugin& plugin = *config->user.exec;
  EXPECT_EQ(plugin.command, base::JoinPath(home_.path(), ".kube/sign-in"));
  EXPECT_THAT(plugin.args, ElementsAre("a", "5"));
  EXPECT_EQ(plugin.env.at("N"), "V");
  EXPECT_EQ(plugin.install_hint, "get it");
  EXPECT_TRUE(plugin.provide_cluster_info);
  EXPECT_EQ(plugin.cluster_config["audience"], "z");
  PutOne("server: https://x",
         "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x, args: null}");
  EXPECT_THAT(Mistake(), HasSubstr("'apiVersion' of 'exec' of user 'u' must be"));
}

TEST_F(ConfigTest, ContextsThatDoNotExist) {
  PutOne("server: https://x", "token: t");
  const auto near = Load("dve");
  EXPECT_TRUE(absl::IsNotFound(near.status()));
  EXPECT_THAT(near.status().message(), AllOf(HasSubstr(".kube/config: there is no context 'dve'"),
                                             HasSubstr("did you mean 'dev'?")));
  EXPECT_THAT(Load("production").status().message(), HasSubstr("available: dev"));
  Put(".kube/config", "contexts: [{name: a, context: {cluster: c}}]");
  EXPECT_THAT(Load().status().message(),
              AllOf(HasSubstr("no current context"), HasSubstr("--context"), HasSubstr(": a")));
  EXPECT_THAT(Load("a").status().message(), HasSubstr("there is no cluster 'c'"));
  Put(".kube/config", "");
  EXPECT_THAT(Load("a").status().message(), HasSubstr("there is no context 'a'"));
}

TEST_F(ConfigTest, FilesThatCannotBeRead) {
  EXPECT_TRUE(absl::IsNotFound(Load().status()));
  EXPECT_THAT(Load().status().message(), AllOf(HasSubstr(".kube/config"), HasSubstr("KUBECONFIG")));
  variables_.clear();
  EXPECT_TRUE(absl::IsNotFound(Load().status()));
  variables_["KUBECONFIG"] = home_.path();  // a folder
  EXPECT_THAT(Load().status().message(), HasSubstr(home_.path()));
  variables_["KUBECONFIG"] = Put("bad", "contexts: [");
  EXPECT_THAT(Mistake(), HasSubstr("/bad:2:1: not valid YAML"));
  variables_["KUBECONFIG"] = Put("bad", "- a\n- b\n");
  EXPECT_THAT(Mistake(), HasSubstr("a kubeconfig file must be a map"));
  variables_["KUBECONFIG"] = Put("bad", std::string(5 << 20, ' '));
  EXPECT_FALSE(Load().ok());
  variables_.clear();
  variables_["HOME"] = home_.path();
  PutOne("server: https://x, certificate-authority: missing.crt", "token: t");
  EXPECT_THAT(Load().status().message(),
              AllOf(HasSubstr("'certificate-authority' of cluster 'c'"), HasSubstr("missing.crt")));
}

TEST_F(ConfigTest, MistakesHavePositionsAndNoSecrets) {
  PutOne("server: https://x, certificate-authority-data: '!hunter2!'", "token: t");
  EXPECT_THAT(Mistake(),
              AllOf(HasSubstr(".kube/config:9:"),
                    HasSubstr("'certificate-authority-data' of cluster 'c' is not base")));
  PutOne("server: https://x",
         "client-certificate-data: aHVudGVyMg==, client-key-data: aHVudGVyMg==");
  EXPECT_THAT(Mistake(),
              AllOf(HasSubstr("'client-certificate-data' of user 'u' is not a base64-encoded PEM"),
                    HasSubstr("'client-key-data'")));
  PutOne("server: https://x", "client-certificate: a.crt");
  EXPECT_THAT(Mistake(), HasSubstr("must be set together"));
  PutOne("server: https://x", "token: 'hunter2 hunter2'");
  EXPECT_THAT(Mistake(), HasSubstr("'token' of user 'u'"));
  PutOne("server: https://x", "token: [hunter2]");
  EXPECT_THAT(Mistake(), HasSubstr("must be text, not a list"));
  PutOne("server: https://x", "auth-provider: {name: gcp}");
  EXPECT_THAT(Mistake(), HasSubstr("gke-gcloud-auth-plugin"));
  PutOne("server: https://x", "as: a, as-uid: b");
  EXPECT_THAT(Mistake(), HasSubstr("'as-uid'"));
}

TEST_F(ConfigTest, TheServerIsAlwaysVerified) {
  PutOne("server: https://x, insecure-skip-tls-verify: true", "token: t");
  EXPECT_THAT(Mistake(),
              AllOf(HasSubstr("insecure-skip-tls-verify"), HasSubstr("tls-server-name")));
  for (const char* server : {"http://1.2.3.4:8080", "1.2.3.4", "''"}) {
    PutOne(absl::StrCat("server: ", server), "token: t");
    EXPECT_THAT(Mistake(), HasSubstr("https://")) << server;
  }
  PutOne("server: 'http://127.0.0.1:8001', insecure-skip-tls-verify: false", "");  // kubectl proxy
  EXPECT_TRUE(Load().ok()) << Load().status();
}

class InClusterTest : public ConfigTest {
 protected:
  InClusterTest() {
    variables_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
    variables_["KUBERNETES_SERVICE_PORT"] = "443";
    Put("account/ca.crt", kPem);
    Put("account/token", "t\n");
    Put("account/namespace", "team\n");
  }
  const std::string folder_ = base::JoinPath(home_.path(), "account");
};

TEST_F(InClusterTest, UsesTheServiceAccount) {
  const auto config = FindCluster(variables(), "", folder_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->authorities, kPem);
  EXPECT_EQ(config->ns, "team");
  EXPECT_EQ(config->user.token.file, base::JoinPath(folder_, "token"));
}

TEST_F(InClusterTest, AKubeconfigFileComesFirst) {
  PutOne("server: https://x", "token: t");
  EXPECT_EQ(FindCluster(variables(), "", folder_)->server, "https://x");
  variables_["HOME"] = "/nowhere";
  EXPECT_FALSE(FindCluster(variables(), "dev", folder_).ok());
}

TEST_F(InClusterTest, WithoutAServiceAccount) {
  const auto config = FindCluster(variables(), "", "/nowhere");
  EXPECT_TRUE(absl::IsFailedPrecondition(config.status()));
  EXPECT_THAT(config.status().message(), HasSubstr("automountServiceAccountToken"));
  variables_.erase("KUBERNETES_SERVICE_HOST");
  EXPECT_TRUE(absl::IsNotFound(InClusterConfig(variables(), folder_).status()));
  EXPECT_TRUE(absl::IsNotFound(FindCluster(variables(), "", folder_).status()));
}

}  // namespace
}  // namespace muster::k8s
