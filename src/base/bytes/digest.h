// SHA-256 and MD5, computed by OpenSSL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

struct SHA256state_st;
struct evp_md_ctx_st;

namespace muster::base {

// Not thread-safe.
class Sha256 final {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::Span<const std::byte> bytes);
  void Update(absl::string_view bytes);
  // Returns the digest in lower-case hexadecimal. Call once, last.
  std::string Finish();

 private:
  std::unique_ptr<SHA256state_st> state_;
};

// For protocols that require it. Detects accidental damage, not tampering. Not thread-safe.
class Md5 final {
 public:
  Md5();
  ~Md5();

  void Update(absl::string_view bytes);
  // Returns the digest in lower-case hexadecimal. Call once, last.
  std::string Finish();

 private:
  struct Deleter {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Deleter> context_;
};

std::string Sha256Hex(absl::string_view bytes);
std::string Md5Hex(absl::string_view bytes);
// Returns the first eight bytes of the SHA-256 as a number. Stable across machines and versions.
uint64_t Fingerprint(absl::string_view bytes);

}  // namespace muster::base
