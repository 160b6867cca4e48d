#include "base/bytes/digest.h"

#include <openssl/evp.h>

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

}  // namespace

void Digest::Deleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest(const evp_md_st* kind) : context_(EVP_MD_CTX_new()) {
  Check(context_ != nullptr ? 1 : 0);
  Check(EVP_DigestInit_ex(context_.get(), kind, nullptr));
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::Update(absl::Span<const std::byte> bytes) {
  Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

void Digest::Update(absl::string_view bytes) {
  Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Digest::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Check(EVP_DigestFinal_ex(context_.get(), digest, &size));
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

Sha256::Sha256() : Digest(EVP_sha256()) {}

Md5::Md5() : Digest(EVP_md5()) {}

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
