#include "cli/cluster/operator_manifests.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/operator_files.h"
#include "codec/yaml.h"
#include "controller/rules/gang.h"
#include "job/job_rules.h"
#include "k8s/resource.h"
#include "net/authority.h"

namespace muster::cli {
namespace {

using k8s::Json;

constexpr char kOperator[] = "muster-operator";
constexpr absl::Duration kYear = absl::Hours(365 * 24);

std::string HostOf(const std::string& ns) { return absl::StrCat(kOperator, ".", ns, ".svc"); }

absl::Status CheckOptions(const InstallOptions& options) {
  if (!job::IsLabel(options.ns)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.ns,
                     "' is not a valid namespace; expected at most 63 lower-case letters, digits "
                     "and inner dashes"));
  }
  MUSTER_RETURN_IF_ERROR(controller::GangSchedulerFromName(options.gang_scheduler).status());
  for (const std::string& image : {options.image, options.trainer_image}) {
    const bool odd = std::any_of(image.begin(), image.end(),
                                 [](unsigned char c) { return !absl::ascii_isgraph(c); });
    if (!image.empty() && !odd) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", image, "' is not a valid image; expected one such as registry.example.com/muster:1"));
  }
  return absl::OkStatus();
}

Json WebhookSecret(const InstallOptions& options) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", kWebhookSecret},
            {"namespace", options.ns},
            {"labels", {{"app.kubernetes.io/name", "muster"}}}}},
          {"type", "kubernetes.io/tls"},
          {"data",
           {{"ca.crt", absl::Base64Escape(options.webhook->authority)},
            {"tls.crt", absl::Base64Escape(options.webhook->certificate)},
            {"tls.key", absl::Base64Escape(options.webhook->key)}}}};
}

// Parses an embedded manifest. An error is a bug: the files are part of the build.
absl::StatusOr<std::vector<Json>> Parse(const base::EmbeddedFile& file) {
  codec::Diagnostics diagnostics(absl::StrCat(file.name, ".yaml"));
  std::vector<Json> objects;
  for (const codec::Node& node : codec::ParseYaml(file.text, {}, diagnostics)) {
    objects.push_back(codec::ToJson(node));
  }
  MUSTER_RETURN_IF_ERROR(diagnostics.ToStatus());
  return objects;
}

// Moves an object, and the subjects of a binding, to namespace `ns`.
void Place(Json& object, const std::string& ns) {
  Json& metadata = object["metadata"];
  if (metadata.contains("namespace")) metadata["namespace"] = ns;
  if (object["kind"] == "Namespace") metadata["name"] = ns;
  if (object.contains("subjects")) {
    for (Json& subject : object["subjects"]) subject["namespace"] = ns;
  }
}

void Fit(Json& object, const InstallOptions& options) {
  Place(object, options.ns);
  if (object["kind"] == "Deployment") {
    Json& container = object["spec"]["template"]["spec"]["containers"][0];
    container["image"] = options.image;
    container["args"].push_back(absl::StrCat("--trainer-image=", options.trainer_image));
    if (options.namespaced) {
      container["args"].push_back(absl::StrCat("--namespace=", options.ns));
    }
    if (options.gang_scheduler != "none") {
      container["args"].push_back(absl::StrCat("--gang-scheduler=", options.gang_scheduler));
    }
  }
  if (object["kind"] == "ValidatingWebhookConfiguration") {
    Json& client = object["webhooks"][0]["clientConfig"];
    client["service"]["namespace"] = options.ns;
    client["caBundle"] = absl::Base64Escape(options.webhook->authority);
  }
}

// Removes cluster-scoped objects, and grants the rules of the operator's ClusterRole in its Role.
std::vector<Json> OfOneNamespace(std::vector<Json> objects) {
  Json rules = Json::array();
  for (const Json& object : objects) {
    if (object["kind"] == "ClusterRole" && k8s::NameOf(object) == kOperator) {
      rules = object["rules"];
    }
  }
  std::erase_if(objects, [](const Json& object) {
    const k8s::ResourceKind* kind =
        k8s::FindKind(k8s::TextAt(object, "/apiVersion"), k8s::TextAt(object, "/kind"));
    return kind == nullptr || !kind->namespaced;
  });
  for (Json& object : objects) {
    if (object["kind"] != "Role") continue;
    for (const Json& rule : rules) object["rules"].push_back(rule);
  }
  return objects;
}

// Returns the decoded value of a Secret's key, or "" if it is absent or invalid.
std::string Decoded(const Json& secret, absl::string_view key) {
  const Json* data = k8s::Find(secret, "/data");
  std::string text;
  if (data == nullptr || !data->is_object()) return text;
  const auto found = data->find(std::string(key));
  if (found == data->end() || !found->is_string()) return text;
  return absl::Base64Unescape(found->get<std::string>(), &text) ? text : "";
}

}  // namespace

absl::StatusOr<WebhookCertificate> MakeWebhookCertificate(const std::string& ns, absl::Time now) {
  const net::CertificateRequest request = {
      .name = kOperator,
      .hosts = absl::StrCat("DNS:", HostOf(ns), ",DNS:", HostOf(ns), ".cluster.local"),
      .from = now - absl::Hours(1),
      .until = now + 10 * kYear};
  net::CertificateRequest authority_request = request;
  authority_request.name = "muster-operator webhook authority";
  MUSTER_ASSIGN_OR_RETURN(const net::Authority authority,
                          net::Authority::Create(authority_request));
  MUSTER_ASSIGN_OR_RETURN(net::Certificate issued, authority.Issue(request));
  return WebhookCertificate{.authority = authority.certificate(),
                            .certificate = std::move(issued.certificate),
                            .key = std::move(issued.key)};
}

std::optional<WebhookCertificate> ReadWebhookCertificate(const Json& secret, const std::string& ns,
                                                         absl::Time now) {
  WebhookCertificate found = {.authority = Decoded(secret, "ca.crt"),
                              .certificate = Decoded(secret, "tls.crt"),
                              .key = Decoded(secret, "tls.key")};
  const absl::Status good = net::CheckServer({.certificate = found.certificate, .key = found.key},
                                             found.authority, HostOf(ns), now + kYear);
  if (!good.ok()) return std::nullopt;
  return found;
}

absl::StatusOr<std::vector<Json>> OperatorManifests(const InstallOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  std::vector<Json> objects;
  for (const base::EmbeddedFile& file : kOperatorFiles) {
    const absl::string_view name = file.name;
    if (name == "webhook" && !options.webhook) continue;
    // Precedes the Deployment: the operator checks for the certificate only when it starts.
    if (name == "operator" && options.webhook) objects.push_back(WebhookSecret(options));
    MUSTER_ASSIGN_OR_RETURN(std::vector<Json> parsed, Parse(file));
    for (Json& object : parsed) {
      Fit(object, options);
      objects.push_back(std::move(object));
    }
  }
  return options.namespaced ? OfOneNamespace(std::move(objects)) : objects;
}

absl::StatusOr<std::vector<Json>> JobDefinitions() {
  for (const base::EmbeddedFile& file : kOperatorFiles) {
    if (absl::string_view(file.name) == "crds") return Parse(file);
  }
  return absl::InternalError("crds.yaml is missing");
}

}  // namespace muster::cli
