// A private certificate authority, for servers whose clients receive its certificate out of band.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

struct evp_pkey_st;
struct x509_st;

namespace muster::net {

struct Certificate {
  std::string certificate;  // PEM, as is the key
  std::string key;
};

struct CertificateRequest {
  std::string name;   // CN: at most 64 characters; "": none
  std::string hosts;  // subjectAltName: "IP:127.0.0.1,DNS:api.example"; "": none
  absl::Time from = absl::Now() - absl::Hours(1);  // allows for clock skew
  absl::Time until = absl::Now() + absl::Hours(1);
};

// A certificate authority. Its key exists only in this object; the certificates it has issued stay
// valid after its destruction. Const methods are thread-safe.
class Authority {
 public:
  // Creates an authority with a new key. Returns InvalidArgument if the name is not a valid CN.
  static absl::StatusOr<Authority> Create(const CertificateRequest& request);
  ~Authority();
  Authority(Authority&& other) noexcept;
  Authority& operator=(Authority&& other) noexcept;

  // Issues a certificate with a new key, valid for both servers and clients. Returns
  // InvalidArgument if the name or the hosts are not valid in a certificate.
  absl::StatusOr<Certificate> Issue(const CertificateRequest& request) const;
  const std::string& certificate() const { return pem_; }  // PEM, for the peers' trust stores

 private:
  Authority();

  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  std::string pem_;
};

// Returns OK if a client that trusts `authority` (PEM) accepts `server` as `host` at the time
// `when`, and the key belongs to the certificate. Else returns FailedPrecondition with the reason.
absl::Status CheckServer(const Certificate& server, const std::string& authority,
                         const std::string& host, absl::Time when);

}  // namespace muster::net
