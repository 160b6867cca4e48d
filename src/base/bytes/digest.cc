#include "base/bytes/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

namespace muster::base {
namespace {

// OpenSSL fails here only when out of memory, or when built without the algorithm.
void Check(int result) {
  if (result != 1) std::abort();
}

std::string Hex(const unsigned char* digest, size_t size) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace

// muster-agent, which is linked statically, verifies packages. EVP would link all algorithms of
// OpenSSL, so SHA-256 uses the deprecated functions, which need nothing else.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

Sha256::Sha256() : state_(std::make_unique<SHA256_CTX>()) { Check(SHA256_Init(state_.get())); }

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::Span<const std::byte> bytes) {
  Check(SHA256_Update(state_.get(), bytes.data(), bytes.size()));
}

void Sha256::Update(absl::string_view bytes) {
  Check(SHA256_Update(state_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::Finish() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  Check(SHA256_Final(digest, state_.get()));
  return Hex(digest, sizeof(digest));
}

#pragma GCC diagnostic pop

void Md5::Deleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Md5::Md5() : context_(EVP_MD_CTX_new()) {
  Check(context_ != nullptr ? 1 : 0);
  Check(EVP_DigestInit_ex(context_.get(), EVP_md5(), nullptr));
}

Md5::~Md5() = default;

void Md5::Update(absl::string_view bytes) {
  Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Md5::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Check(EVP_DigestFinal_ex(context_.get(), digest, &size));
  return Hex(digest, size);
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

uint64_t Fingerprint(absl::string_view bytes) {
  uint64_t number = 0;
  std::ignore = absl::SimpleHexAtoi(absl::string_view(Sha256Hex(bytes)).substr(0, 16), &number);
  return number;
}

std::string Md5Hex(absl::string_view bytes) {
  Md5 hash;
  hash.Update(bytes);
  return hash.Finish();
}

}  // namespace muster::base
