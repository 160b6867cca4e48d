// Writes an object of S3: small ones in one request, large ones as a multipart upload.
#pragma once

#include <string>
#include <vector>

#include "storage/part_writer.h"
#include "storage/s3/client.h"

namespace muster::storage {

// Retries each part on its own; Close() completes the object. Aborts the upload on failure. The
// server checks the SHA-256 of every body; the writer checks the MD5 that the server returns.
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
  // Returns whether the stored object equals the sent bytes: the response to a successful request
  // may have been lost and its retry refused. Two concurrent writers of the same bytes may thus
  // both succeed.
  bool MatchesUpload(const std::string& etag);
  std::string ExpectedEtag() const;

  S3Client& client_;
  const IfExists if_exists_;
  std::string upload_;  // id of the multipart upload; "" if there is none
  std::vector<Part> parts_;
};

}  // namespace muster::storage
