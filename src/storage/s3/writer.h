// Writes an object of S3: small ones at once, large ones in parts.
#pragma once

#include <string>
#include <vector>

#include "storage/part_writer.h"
#include "storage/s3/client.h"

namespace muster::storage {

// Each part is repeated on its own; the object appears when Close() puts them together. What was
// sent is removed on failure. Every body is checked by the server (SHA-256) and what the server has
// by us (MD5).
class S3Writer final : public PartWriter {
 public:
  S3Writer(S3Client& client, Url url, IfExists if_exists)
      : PartWriter(std::move(url), client.options().part_bytes),
        client_(client),
        if_exists_(if_exists) {}
  ~S3Writer() override;

 private:
  struct Part {
    std::string etag;
    std::string md5;
  };

  absl::Status SendPart(absl::string_view part) override;
  absl::Status SendLast(absl::string_view part) override;
  absl::Status SendWhole(absl::string_view content) override;
  void Abort() override;
  absl::Status Begin();
  absl::Status Complete();
  // Whether the object is what we sent: an answer may have been lost, and its repetition refused.
  // Of two that create the same bytes at the same time both may so succeed.
  bool IsOurs(const std::string& etag);
  std::string ExpectedEtag() const;

  S3Client& client_;
  const IfExists if_exists_;
  std::string upload_;  // its id; "" when there is none
  std::vector<Part> parts_;
};

}  // namespace muster::storage
