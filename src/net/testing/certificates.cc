#include "net/testing/certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>

namespace muster::net {
namespace {

std::string Take(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

std::string ToPem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  return Take(bio);
}

std::string ToPem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return Take(bio);
}

void Extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Not signed yet.
X509* Begin(EVP_PKEY* key, const CertificateRequest& request) {
  static std::atomic<long> serial = 1;
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(request.from));
  ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(request.until));
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(request.name.c_str()), -1, -1,
                             0);
  X509_set_pubkey(certificate, key);
  return certificate;
}

}  // namespace

void TestAuthority::Deleter::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }
void TestAuthority::Deleter::operator()(x509_st* certificate) const { X509_free(certificate); }

TestAuthority::TestAuthority() : key_(EVP_EC_gen("P-256")) {
  certificate_.reset(Begin(key_.get(), {.name = "muster test authority"}));
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  Extend(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  pem_ = ToPem(certificate_.get());
}

TestAuthority::~TestAuthority() = default;

TestCertificate TestAuthority::Issue(const CertificateRequest& request) const {
  const std::unique_ptr<EVP_PKEY, Deleter> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, Deleter> certificate(Begin(key.get(), request));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  if (!request.hosts.empty()) {
    Extend(certificate.get(), certificate_.get(), NID_subject_alt_name, request.hosts);
  }
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  return {.certificate = ToPem(certificate.get()), .key = ToPem(key.get())};
}

}  // namespace muster::net
