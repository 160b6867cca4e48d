#include "k8s/credentials.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "k8s/exec_plugin.h"
#include "net/http.h"

namespace muster::k8s {
namespace {

// The margin covers the time of a request and small differences of clocks.
constexpr absl::Duration kRefreshBeforeExpiry = absl::Seconds(10);
// As client-go does: the kubelet replaces a pod's token file when 80% of its lifetime have passed.
constexpr absl::Duration kFileRefresh = absl::Minutes(1);
constexpr int64_t kMaxCredentialBytes = 1 << 20;

struct Deleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};

absl::StatusOr<std::string> Read(const DataOrFile& material) {
  if (material.file.empty()) return material.data;
  MUSTER_ASSIGN_OR_RETURN(const std::string content,
                          base::ReadFile(material.file, kMaxCredentialBytes));
  return std::string(absl::StripAsciiWhitespace(content));
}

}  // namespace

absl::StatusOr<absl::Time> ExpiryOf(const std::string& certificate) {
  const std::unique_ptr<BIO, Deleter> bio(
      BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size())));
  std::unique_ptr<X509, Deleter> parsed;
  if (bio != nullptr) parsed.reset(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  std::tm time{};
  if (parsed == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(parsed.get()), &time) != 1) {
    return absl::InvalidArgumentError("is not a PEM certificate");
  }
  return absl::FromTM(time, absl::UTCTimeZone());
}

Credentials::Credentials(const ClusterConfig& config, const base::Clock& clock,
                         absl::Duration plugin_timeout)
    : config_(config),
      clock_(clock),
      plugin_timeout_(plugin_timeout),
      cache_([this] { return Load(); },
             config.user.exec.has_value() ? kRefreshBeforeExpiry : absl::ZeroDuration(), clock) {}

absl::StatusOr<Credential> Credentials::Load() const {
  const std::string who = absl::StrCat("user '", config_.user.name, "' (", config_.origin, ")");
  auto found = config_.user.exec.has_value()
                   ? RunExecPlugin(*config_.user.exec, config_, plugin_timeout_)
                   : FromUser();
  if (absl::IsNotFound(found.status())) {  // callers take NotFound for a missing object
    return absl::UnauthenticatedError(absl::StrCat(who, ": ", found.status().message()));
  }
  if (!found.ok()) return base::Annotate(found.status(), who);
  if (!net::FitsHeader(found->authorization.substr(found->authorization.find(' ') + 1))) {
    return absl::UnauthenticatedError(
        absl::StrCat(who, ": the token contains a space or a newline"));
  }
  if (found->certificate.empty()) return found;
  const auto expiry = ExpiryOf(found->certificate);
  if (!expiry.ok()) {
    return absl::UnauthenticatedError(
        absl::StrCat(who, ": the client certificate ", expiry.status().message()));
  }
  if (*expiry <= clock_.Now()) {
    return absl::UnauthenticatedError(absl::StrCat(
        who, ": the client certificate expired at ",
        absl::FormatTime(absl::RFC3339_sec, *expiry, absl::UTCTimeZone()),
        "; ask the cluster's administrator for a new one (kubeadm: `kubeadm certs renew`)"));
  }
  return found;
}

absl::StatusOr<Credential> Credentials::FromUser() const {
  const User& user = config_.user;
  Credential credential;
  MUSTER_ASSIGN_OR_RETURN(const std::string token, Read(user.token));
  if (!token.empty()) {
    credential.authorization = absl::StrCat("Bearer ", token);
  } else if (!user.token.file.empty()) {
    return absl::UnauthenticatedError(absl::StrCat(user.token.file, " is empty"));
  } else if (!user.username.empty()) {
    credential.authorization =
        absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(user.username, ":", user.password)));
  }
  MUSTER_ASSIGN_OR_RETURN(credential.certificate, Read(user.certificate));
  MUSTER_ASSIGN_OR_RETURN(credential.key, Read(user.key));
  const bool files = !user.token.file.empty() || !user.certificate.file.empty();
  if (files) credential.expires = clock_.Now() + kFileRefresh;
  return credential;
}

}  // namespace muster::k8s
