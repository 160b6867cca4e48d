// Writes an object of Google Cloud Storage: small ones at once, large ones by a resumable upload.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "storage/gs/client.h"
#include "storage/part_writer.h"

namespace muster::storage {

// An upload goes on where the server says when a connection is lost, and is cancelled on failure.
// What must not replace anything is always uploaded that way: it can be asked whether it has
// succeeded when the answer was lost. The server checks what it has received by its CRC-32C before
// the object appears, and we compare that which it then tells.
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

  // Opens the upload's session.
  absl::Status Begin();
  // Sends what comes next, as often as it takes.
  absl::Status Transfer(absl::string_view part, bool last);
  absl::StatusOr<net::Response> Put(absl::string_view bytes, const std::string& range,
                                    bool repeatable);
  // How much the server has, between `from` and `to`.
  absl::StatusOr<int64_t> Received(const net::Response& response, int64_t from, int64_t to) const;
  // Compares what the server has with what was sent; removes what is not the same.
  absl::Status Verify(const net::Response& response, int64_t bytes);

  GsClient& client_;
  const IfExists if_exists_;
  std::string session_;  // its address; "" when there is none
  int64_t sent_ = 0;     // parts that are there
  uint32_t crc_ = 0;     // of all that was given
};

}  // namespace muster::storage
