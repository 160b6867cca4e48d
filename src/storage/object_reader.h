// Reads an object with HTTP range requests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "net/http.h"
#include "storage/file_system.h"

namespace muster::storage {

// Sends one request per Read().
class ObjectReader : public Reader {
 public:
  int64_t size() const final { return size_; }
  absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) final;

 protected:
  ObjectReader(Url url, int64_t size) : url_(std::move(url)), size_(size) {}

  const Url& url() const { return url_; }
  // Sends a request with that Range header and returns its successful response. Returns Aborted if
  // the object was replaced since it was opened.
  virtual absl::StatusOr<net::Response> Get(const std::string& range, net::BodySink& sink) = 0;
  // Validates received bytes. Read() returns its error.
  virtual absl::Status Check(int64_t /*offset*/, absl::string_view /*bytes*/) {
    return absl::OkStatus();
  }

 private:
  const Url url_;
  const int64_t size_;
};

}  // namespace muster::storage
