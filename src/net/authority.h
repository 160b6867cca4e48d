// Certificates of our own making, for those who are told whom to trust.
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
  absl::Time from = absl::Now() - absl::Hours(1);  // others' clocks may be slow
  absl::Time until = absl::Now() + absl::Hours(1);
};

// Its key is never written anywhere: it ends with this object, and what it has issued lasts.
class Authority {
 public:
  // A new one. InvalidArgument when the name does not fit a certificate.
  static absl::StatusOr<Authority> Create(const CertificateRequest& request);
  ~Authority();
  Authority(Authority&& other) noexcept;
  Authority& operator=(Authority&& other) noexcept;

  // A certificate for a server, a client or both, with a new key. InvalidArgument when name or
  // hosts do not fit one.
  absl::StatusOr<Certificate> Issue(const CertificateRequest& request) const;
  const std::string& certificate() const { return pem_; }  // what others are told to trust

 private:
  Authority();

  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  std::string pem_;
};

// Whether who trusts `authority` (PEM) accepts `server` as `host` at that time, and the key is
// its own. FailedPrecondition says why not.
absl::Status CheckServer(const Certificate& server, const std::string& authority,
                         const std::string& host, absl::Time when);

}  // namespace muster::net
