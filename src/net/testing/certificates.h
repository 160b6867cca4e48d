// Certificates for tests.
#pragma once

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

struct evp_pkey_st;
struct x509_st;

namespace muster::net {

struct TestCertificate {
  std::string certificate;  // PEM, as is the key
  std::string key;
};

struct CertificateRequest {
  std::string name;   // CN
  std::string hosts;  // subjectAltName: "IP:127.0.0.1,DNS:api.example"; "": none
  absl::Time from = absl::Now() - absl::Hours(1);
  absl::Time until = absl::Now() + absl::Hours(1);
};

// An authority of its own.
class TestAuthority {
 public:
  TestAuthority();
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  TestCertificate Issue(const CertificateRequest& request) const;
  const std::string& certificate() const { return pem_; }

 private:
  struct Deleter {
    void operator()(evp_pkey_st* key) const;
    void operator()(x509_st* certificate) const;
  };
  std::unique_ptr<evp_pkey_st, Deleter> key_;
  std::unique_ptr<x509_st, Deleter> certificate_;
  std::string pem_;
};

}  // namespace muster::net
