#include "cli/cluster/operator_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "net/authority.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

std::vector<Json> Manifests(const InstallOptions& options) {
  auto objects = OperatorManifests(options);
  EXPECT_TRUE(objects.ok()) << objects.status();
  return objects.value_or(std::vector<Json>());
}

const Json& Only(const std::vector<Json>& objects, absl::string_view kind) {
  static const Json& none = *new Json;
  for (const Json& object : objects) {
    if (object["kind"] == std::string(kind)) return object;
  }
  ADD_FAILURE() << "no " << kind;
  return none;
}

std::vector<std::string> Kinds(const std::vector<Json>& objects) {
  std::vector<std::string> kinds;
  for (const Json& object : objects) {
    if (kinds.empty() || kinds.back() != object["kind"]) kinds.push_back(object["kind"]);
  }
  return kinds;
}

TEST(OperatorManifestsTest, DependenciesComeFirst) {
  const auto certificate = MakeWebhookCertificate("muster", kNow).value();
  EXPECT_THAT(
      Kinds(Manifests(
          {.ns = "muster", .image = "muster:1", .trainer_image = "t", .webhook = certificate})),
      ElementsAre("CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole",
                  "ClusterRoleBinding", "Role", "RoleBinding", "ClusterRole", "Secret", "Service",
                  "NetworkPolicy", "Deployment", "ValidatingWebhookConfiguration"));
  const auto without =
      Kinds(Manifests({.ns = "muster", .image = "muster:1", .trainer_image = "t"}));
  EXPECT_EQ(without.back(), "Deployment");
  EXPECT_EQ(std::count(without.begin(), without.end(), "Secret"), 0);
}

TEST(OperatorManifestsTest, AppliesTheOptions) {
  const auto certificate = MakeWebhookCertificate("mine", kNow).value();
  const auto objects = Manifests({.ns = "mine",
                                  .image = "r.example/m:2",
                                  .trainer_image = "t",
                                  .gang_scheduler = "volcano",
                                  .webhook = certificate});
  for (const Json& object : objects) {
    EXPECT_EQ(object["metadata"].value("namespace", "mine"), "mine") << object;
    EXPECT_EQ(object.dump().find("\"namespace\":\"muster\""), std::string::npos) << object;
  }
  EXPECT_EQ(Only(objects, "Namespace")["metadata"]["name"], "mine");
  const Json& container = Only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(container["image"], "r.example/m:2");
  EXPECT_EQ(container["args"].front(), "operator");
  EXPECT_THAT(container["args"], Contains(Json("--webhook-certificate=/etc/muster/webhook")));
  EXPECT_THAT(container["args"], Contains(Json("--trainer-image=t")));
  EXPECT_THAT(container["args"], Contains(Json("--gang-scheduler=volcano")));
  EXPECT_EQ(Only(objects, "ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"],
            Json({{"service",
                   {{"name", "muster-operator"},
                    {"namespace", "mine"},
                    {"path", "/validate"},
                    {"port", 443}}},
                  {"caBundle", absl::Base64Escape(certificate.authority)}}));
}

TEST(OperatorManifestsTest, NamespacedInstallation) {
  const auto objects =
      Manifests({.ns = "mine", .image = "m:1", .trainer_image = "t", .namespaced = true});
  EXPECT_THAT(Kinds(objects), ElementsAre("ServiceAccount", "Role", "RoleBinding", "Service",
                                          "NetworkPolicy", "Deployment"));
  for (const Json& object : objects) EXPECT_EQ(object["metadata"]["namespace"], "mine");
  std::set<std::string> resources;
  for (const Json& rule : Only(objects, "Role")["rules"]) {
    for (const Json& resource : rule["resources"]) resources.insert(resource);
  }
  EXPECT_THAT(resources, testing::IsSupersetOf(
                             {"leases", "tfjobs", "tfjobs/status", "pods", "services", "events"}));
  EXPECT_THAT(Only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"],
              Contains(Json("--namespace=mine")));
  EXPECT_THAT(Kinds(JobDefinitions().value()), ElementsAre("CustomResourceDefinition"));
}

TEST(OperatorManifestsTest, RejectsInvalidNames) {
  for (const char* name : {"", "Mine", "-a", "a-", "a.b", "a b", "a\n"}) {
    EXPECT_EQ(OperatorManifests({.ns = name, .image = "i", .trainer_image = "t"}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(
      OperatorManifests({.ns = std::string(63, 'a'), .image = "i", .trainer_image = "t"}).ok());
  EXPECT_FALSE(
      OperatorManifests({.ns = std::string(64, 'a'), .image = "i", .trainer_image = "t"}).ok());
  for (const char* image : {"", "a b", "a\n"}) {
    EXPECT_EQ(OperatorManifests({.ns = "a", .image = image, .trainer_image = "t"}).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(OperatorManifests({.ns = "a", .image = "i", .trainer_image = image}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(WebhookCertificateTest, IsValidForTheServiceForYears) {
  const std::string longest(63, 'n');
  for (const std::string& ns : {std::string("muster"), longest}) {
    const auto made = MakeWebhookCertificate(ns, kNow);
    ASSERT_TRUE(made.ok()) << made.status();
    const net::Certificate server = {.certificate = made->certificate, .key = made->key};
    for (const char* ending : {".svc", ".svc.cluster.local"}) {
      EXPECT_EQ(
          net::CheckServer(server, made->authority, absl::StrCat("muster-operator.", ns, ending),
                           kNow + absl::Hours(9 * 365 * 24)),
          absl::OkStatus());
    }
  }
}

TEST(WebhookCertificateTest, ReusesAValidCertificate) {
  const auto made = MakeWebhookCertificate("muster", kNow).value();
  const Json secret = Only(
      Manifests({.ns = "muster", .image = "i", .trainer_image = "t", .webhook = made}), "Secret");
  const auto kept = ReadWebhookCertificate(secret, "muster", kNow + absl::Hours(24));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->authority, made.authority);
  EXPECT_EQ(kept->certificate, made.certificate);
  EXPECT_EQ(kept->key, made.key);
  EXPECT_FALSE(ReadWebhookCertificate(secret, "muster", kNow + absl::Hours(9.5 * 365 * 24)));
  EXPECT_FALSE(ReadWebhookCertificate(secret, "other", kNow));
}

TEST(WebhookCertificateTest, IgnoresADamagedCertificate) {
  const auto made = MakeWebhookCertificate("muster", kNow).value();
  const Json secret = Only(
      Manifests({.ns = "muster", .image = "i", .trainer_image = "t", .webhook = made}), "Secret");
  for (const char* key : {"ca.crt", "tls.crt", "tls.key"}) {
    for (const Json& value : {Json("!"), Json(""), Json(5), Json("anVuaw==")}) {
      Json damaged = secret;
      damaged["data"][key] = value;
      EXPECT_FALSE(ReadWebhookCertificate(damaged, "muster", kNow)) << key << value;
    }
  }
  EXPECT_FALSE(ReadWebhookCertificate(Json::object(), "muster", kNow));
  EXPECT_FALSE(ReadWebhookCertificate({{"data", "x"}}, "muster", kNow));
}

}  // namespace
}  // namespace muster::cli
