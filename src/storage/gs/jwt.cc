#include "storage/gs/jwt.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <limits>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::storage {
namespace {

struct Deleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Without this callback OpenSSL prompts on the terminal.
int NoPassPhrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return 0; }

absl::StatusOr<std::unique_ptr<EVP_PKEY, Deleter>> ReadKey(absl::string_view pem) {
  std::unique_ptr<EVP_PKEY, Deleter> key;
  if (pem.size() <= static_cast<size_t>(std::numeric_limits<int>::max())) {
    const std::unique_ptr<BIO, Deleter> bio(
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    if (bio != nullptr) {
      key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassPhrase, nullptr));
    }
  }
  ERR_clear_error();
  if (key == nullptr || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA) {
    return absl::InvalidArgumentError(
        "the private key is not an RSA key in PEM without a passphrase");
  }
  return key;
}

}  // namespace

absl::StatusOr<std::string> SignJwt(absl::string_view header, absl::string_view claims,
                                    absl::string_view private_key) {
  MUSTER_ASSIGN_OR_RETURN(const auto key, ReadKey(private_key));
  const std::string text =
      absl::StrCat(absl::WebSafeBase64Escape(header), ".", absl::WebSafeBase64Escape(claims));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const std::unique_ptr<EVP_MD_CTX, Deleter> context(EVP_MD_CTX_new());
  std::string signature(static_cast<size_t>(EVP_PKEY_size(key.get())), '\0');
  size_t size = signature.size();
  const bool signed_now =
      context != nullptr &&
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     bytes, text.size()) == 1;
  ERR_clear_error();
  if (!signed_now) return absl::InvalidArgumentError("the private key cannot be used to sign");
  signature.resize(size);
  return absl::StrCat(text, ".", absl::WebSafeBase64Escape(signature));
}

}  // namespace muster::storage
