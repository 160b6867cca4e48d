// Writes an object of S3: small ones at once, large ones in parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/file_system.h"
#include "storage/s3/client.h"

namespace muster::storage {

// Parts are sent as they become full, each repeated on its own; the object appears when the last
// call of Close() puts them together. What was sent is removed on failure. Every body is checked by
// the server (SHA-256) and what the server has by us (MD5).
class S3Writer final : public Writer {
 public:
  S3Writer(S3Client& client, Url url, IfExists if_exists)
      : client_(client),
        url_(std::move(url)),
        if_exists_(if_exists),
        part_bytes_(static_cast<size_t>(client.options().part_bytes)) {}
  ~S3Writer() override;
  S3Writer(const S3Writer&) = delete;
  S3Writer& operator=(const S3Writer&) = delete;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Close() override;

 private:
  struct Part {
    std::string etag;
    std::string md5;
  };

  absl::Status Begin();
  absl::Status SendPart();
  absl::Status PutWhole();
  absl::Status Complete();
  // Whether the object is what we sent: an answer may have been lost, and its repetition refused.
  // Of two that create the same bytes at the same time both may so succeed.
  bool IsOurs(const std::string& etag);
  std::string ExpectedEtag() const;
  void Abort();

  S3Client& client_;
  const Url url_;
  const IfExists if_exists_;
  size_t part_bytes_;
  std::string buffer_;
  std::string upload_;  // its id; "" when there is none
  std::vector<Part> parts_;
  absl::Status status_;
};

}  // namespace muster::storage
