// Writes an object of Google Cloud Storage: small ones in one request, large ones with a resumable
// upload.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "storage/gs/client.h"
#include "storage/part_writer.h"

namespace muster::storage {

// After a lost connection, an upload resumes at the offset that the server reports. It is cancelled
// on failure. IfExists::kFail always uses a resumable upload, since its outcome can be queried when
// the response was lost. The server checks the CRC-32C before the object becomes visible; the
// writer also checks the one in the response.
class GsWriter final : public PartWriter {
 public:
  GsWriter(GsClient& client, Url url, IfExists if_exists)
      : PartWriter(std::move(url), client.options().chunk_bytes),
        client_(client),
        if_exists_(if_exists) {}
  ~GsWriter() override;

 private:
  absl::Status SendPart(absl::string_view part) override;
  absl::Status SendLast(absl::string_view part) override;
  absl::Status SendWhole(absl::string_view content) override;
  void Abort() override;

  // Starts a resumable upload.
  absl::Status Begin();
  // Sends the next part, with retries.
  absl::Status Transfer(absl::string_view part, bool last);
  absl::StatusOr<net::Response> Put(absl::string_view bytes, const std::string& range,
                                    bool idempotent);
  // Returns how many bytes the server has, between `from` and `to`.
  absl::StatusOr<int64_t> Received(const net::Response& response, int64_t from, int64_t to) const;
  // Compares the object with what was sent; deletes it if they differ.
  absl::Status Verify(const net::Response& response, int64_t bytes);

  GsClient& client_;
  const IfExists if_exists_;
  std::string session_;  // the address of the upload; "" if there is none
  int64_t sent_ = 0;     // bytes that the server has
  uint32_t crc_ = 0;     // of all bytes so far
};

}  // namespace muster::storage
