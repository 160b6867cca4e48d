// Writes a TFRecord file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/unique_fd.h"
#include "data/tfrecord/record_file.h"

struct z_stream_s;

namespace muster::data {

// The file becomes visible when Close() succeeds; destroying the writer before that removes it. Not
// thread-safe.
class RecordWriter {
 public:
  // Close() replaces an existing file of that name.
  static absl::StatusOr<RecordWriter> Open(const std::string& path, Compression compression);
  RecordWriter(RecordWriter&&) noexcept = default;
  RecordWriter& operator=(RecordWriter&&) = delete;
  ~RecordWriter();

  absl::Status Write(absl::string_view data);
  // Flushes the file to the disk and gives it its name.
  absl::Status Close();

  int64_t records() const { return records_; }

 private:
  struct EndDeflate {
    void operator()(z_stream_s* stream) const;
  };

  RecordWriter(std::string path, std::string temporary, base::UniqueFd fd);
  absl::Status Flush(bool last);
  absl::Status Deflate(bool last);

  std::string path_;
  std::string temporary_;
  base::UniqueFd fd_;
  std::unique_ptr<z_stream_s, EndDeflate> stream_;  // null for an uncompressed file
  std::string buffer_;                              // framed, not written yet
  std::string compressed_;
  int64_t records_ = 0;
};

}  // namespace muster::data
