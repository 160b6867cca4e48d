// Receives a response body into a caller's buffer.
#pragma once

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "net/http.h"

namespace muster::storage {

// Returns DataLoss if the body exceeds the buffer.
class SpanSink final : public net::BodySink {
 public:
  explicit SpanSink(absl::Span<char> buffer) : buffer_(buffer) {}

  absl::Status Write(absl::string_view bytes) override {
    if (bytes.size() > buffer_.size() - filled_) {
      return absl::DataLossError("the server sent more bytes than requested");
    }
    std::memcpy(buffer_.data() + filled_, bytes.data(), bytes.size());
    filled_ += bytes.size();
    return absl::OkStatus();
  }
  absl::Status Rewind() override {
    filled_ = 0;
    return absl::OkStatus();
  }
  size_t filled() const { return filled_; }

 private:
  const absl::Span<char> buffer_;
  size_t filled_ = 0;
};

}  // namespace muster::storage
