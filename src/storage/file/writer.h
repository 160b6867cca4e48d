// Writes a local file atomically.
#pragma once

#include <string>

#include "base/files/unique_fd.h"
#include "storage/file_system.h"

namespace muster::storage {

// Writes a temporary file in the same folder, then: fsync, rename, fsync of the folder.
class LocalWriter final : public Writer {
 public:
  // Creates missing folders.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(const Url& url, IfExists if_exists);
  ~LocalWriter() override;
  LocalWriter(const LocalWriter&) = delete;
  LocalWriter& operator=(const LocalWriter&) = delete;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Close() override;

 private:
  LocalWriter(Url url, IfExists if_exists, std::string folder)
      : url_(std::move(url)), if_exists_(if_exists), folder_(std::move(folder)) {}
  absl::Status Open();
  absl::Status Commit();
  absl::Status MoveIntoPlace();

  const Url url_;
  const IfExists if_exists_;
  const std::string folder_;
  std::string temporary_;  // "" after it was renamed
  base::UniqueFd fd_;
  absl::Status status_;
};

}  // namespace muster::storage
