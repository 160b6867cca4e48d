// Takes the body of an answer where the caller wants it.
#pragma once

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "net/http.h"

namespace muster::storage {

// DataLoss when more comes than there is room for.
class SpanSink final : public net::BodySink {
 public:
  explicit SpanSink(absl::Span<char> room) : room_(room) {}

  absl::Status Write(absl::string_view bytes) override {
    if (bytes.size() > room_.size() - filled_) {
      return absl::DataLossError("the server sends more than it was asked for");
    }
    std::memcpy(room_.data() + filled_, bytes.data(), bytes.size());
    filled_ += bytes.size();
    return absl::OkStatus();
  }
  absl::Status Rewind() override {
    filled_ = 0;
    return absl::OkStatus();
  }
  size_t filled() const { return filled_; }

 private:
  const absl::Span<char> room_;
  size_t filled_ = 0;
};

}  // namespace muster::storage
