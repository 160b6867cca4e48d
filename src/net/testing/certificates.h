// Certificates for tests.
#pragma once

#include <string>

#include "net/authority.h"

namespace muster::net {

using TestCertificate = Certificate;

// A certificate authority for one test.
class TestAuthority {
 public:
  TestAuthority() : authority_(Authority::Create({.name = "muster test authority"}).value()) {}

  TestCertificate Issue(const CertificateRequest& request) const {
    return authority_.Issue(request).value();
  }
  const std::string& certificate() const { return authority_.certificate(); }

 private:
  const Authority authority_;
};

}  // namespace muster::net
