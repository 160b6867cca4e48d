// SHA-256 and MD5, computed by OpenSSL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

struct evp_md_ctx_st;
struct evp_md_st;

namespace muster::base {

// The common part of Sha256 and Md5. Not thread-safe.
class Digest {
 public:
  void Update(absl::Span<const std::byte> bytes);
  void Update(absl::string_view bytes);
  // Returns the digest in lower-case hexadecimal. Call once, last.
  std::string Finish();

 protected:
  explicit Digest(const evp_md_st* kind);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

 private:
  struct Deleter {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Deleter> context_;
};

class Sha256 final : public Digest {
 public:
  Sha256();
};

// For protocols that require it. Detects accidental damage, not tampering.
class Md5 final : public Digest {
 public:
  Md5();
};

std::string Sha256Hex(absl::string_view bytes);
std::string Md5Hex(absl::string_view bytes);
// Returns the first eight bytes of the SHA-256 as a number. Stable across machines and versions.
uint64_t Fingerprint(absl::string_view bytes);

}  // namespace muster::base
