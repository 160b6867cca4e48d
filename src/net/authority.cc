#include "net/authority.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::net {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using CertificatePtr = std::shared_ptr<X509>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string Text(const Memory& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : "";
}

std::string ToPem(X509* certificate) {
  const Memory memory(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_X509(memory.get(), certificate);
  return Text(memory);
}

std::string ToPem(EVP_PKEY* key) {
  const Memory memory(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return Text(memory);
}

Memory Reader(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

CertificatePtr ReadCertificate(const std::string& pem) {
  return {PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr), X509_free};
}

absl::StatusOr<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  if (key == nullptr) return absl::InternalError("OpenSSL cannot generate a key");
  return key;
}

absl::Status Extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), X509_EXTENSION_free);
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is not a valid certificate extension: ", OBJ_nid2ln(kind)));
  }
  return absl::OkStatus();
}

// Returns an unsigned certificate with subject, serial number and validity.
absl::StatusOr<CertificatePtr> Begin(EVP_PKEY* key, const CertificateRequest& request) {
  CertificatePtr certificate(X509_new(), X509_free);
  uint64_t serial = 0;
  if (certificate == nullptr ||
      RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1) {
    return absl::InternalError("OpenSSL cannot create a certificate");
  }
  X509_set_version(certificate.get(), X509_VERSION_3);
  // 63 random bits: RFC 5280 requires a positive serial number.
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1U);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(request.from));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(request.until));
  if (!request.name.empty() &&
      X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(request.name.data()),
                                 static_cast<int>(request.name.size()), -1, 0) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", request.name,
                     "' is not a valid name for a certificate; use 1 to 64 characters of UTF-8"));
  }
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

absl::Status Sign(X509* certificate, EVP_PKEY* key) {
  if (X509_sign(certificate, key, EVP_sha256()) > 0) return absl::OkStatus();
  return absl::InternalError("OpenSSL cannot sign a certificate");
}

}  // namespace

Authority::Authority() = default;
Authority::~Authority() = default;
Authority::Authority(Authority&& other) noexcept = default;
Authority& Authority::operator=(Authority&& other) noexcept = default;

absl::StatusOr<Authority> Authority::Create(const CertificateRequest& request) {
  Authority made;
  MUSTER_ASSIGN_OR_RETURN(made.key_, NewKey());
  MUSTER_ASSIGN_OR_RETURN(made.certificate_, Begin(made.key_.get(), request));
  X509* own = made.certificate_.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  MUSTER_RETURN_IF_ERROR(Extend(own, own, NID_basic_constraints, "critical,CA:TRUE"));
  MUSTER_RETURN_IF_ERROR(Extend(own, own, NID_key_usage, "critical,keyCertSign"));
  MUSTER_RETURN_IF_ERROR(Sign(own, made.key_.get()));
  made.pem_ = ToPem(own);
  return made;
}

absl::StatusOr<Certificate> Authority::Issue(const CertificateRequest& request) const {
  MUSTER_ASSIGN_OR_RETURN(const Key key, NewKey());
  MUSTER_ASSIGN_OR_RETURN(const CertificatePtr certificate, Begin(key.get(), request));
  X509* issuer = certificate_.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  const std::pair<int, std::string> extensions[] = {
      {NID_basic_constraints, "critical,CA:FALSE"},
      {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, "serverAuth,clientAuth"},
      {NID_subject_alt_name, request.hosts},
  };
  for (const auto& [kind, value] : extensions) {
    if (value.empty()) continue;
    MUSTER_RETURN_IF_ERROR(Extend(certificate.get(), issuer, kind, value));
  }
  MUSTER_RETURN_IF_ERROR(Sign(certificate.get(), key_.get()));
  return Certificate{.certificate = ToPem(certificate.get()), .key = ToPem(key.get())};
}

absl::Status CheckServer(const Certificate& server, const std::string& authority,
                         const std::string& host, absl::Time when) {
  const CertificatePtr trusted = ReadCertificate(authority);
  const CertificatePtr own = ReadCertificate(server.certificate);
  const Key key(PEM_read_bio_PrivateKey(Reader(server.key).get(), nullptr, nullptr, nullptr),
                EVP_PKEY_free);
  if (trusted == nullptr || own == nullptr || key == nullptr) {
    return absl::FailedPreconditionError("not a PEM certificate and key");
  }
  if (X509_check_private_key(own.get(), key.get()) != 1) {
    return absl::FailedPreconditionError("the key does not belong to the certificate");
  }
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      X509_STORE_free);
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                              X509_STORE_CTX_free);
  if (store == nullptr || check == nullptr ||
      X509_STORE_add_cert(store.get(), trusted.get()) != 1 ||
      X509_STORE_CTX_init(check.get(), store.get(), own.get(), nullptr) != 1) {
    return absl::InternalError("OpenSSL cannot verify a certificate");
  }
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(check.get());
  X509_VERIFY_PARAM_set_time(parameters, absl::ToTimeT(when));
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set1_host(parameters, host.data(), host.size());
  if (X509_verify_cert(check.get()) == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get())));
}

}  // namespace muster::net
