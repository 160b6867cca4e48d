// Files as a tar archive, compressed: the same bytes for the same files, whoever makes it, where
// and when.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/confined_folder.h"
#include "base/digest.h"
#include "launch/work_dir.h"

struct z_stream_s;

namespace muster::vertex {

using ByteSink = std::function<absl::Status(absl::string_view)>;

// Files of a listing of `root`, in its order, not compressed: with the same owner and time for all.
// Aborted when a file is not what it was when it was hashed.
absl::Status WriteTar(const std::string& root, const std::vector<WorkFile>& files,
                      const ByteSink& sink);

// Compresses what it is given. Not thread-safe.
class Gzip {
 public:
  explicit Gzip(ByteSink sink);
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  absl::Status Write(absl::string_view bytes);
  absl::Status Finish();

 private:
  absl::Status Run(absl::string_view bytes, int flush);

  const ByteSink sink_;
  const std::unique_ptr<z_stream_s> stream_;
  std::string buffer_;
};

// The SHA-256 that a package is named by: of the path, mode, content and target of its entries, in
// their order.
class PackageDigest {
 public:
  PackageDigest();
  // An entry with its hash.
  void Add(const WorkFile& file);
  std::string Finish() { return sum_.Finish(); }

 private:
  Sha256 sum_;
};

// Puts what is in a compressed archive, which comes in any pieces, below a folder. Whatever the
// archive says, and whatever links an earlier one has made there, nothing is written elsewhere and
// nothing is replaced: that is DataLoss. Links are made last. Not thread-safe.
class Unpacker {
 public:
  // `folder` outlives it.
  explicit Unpacker(ConfinedFolder& folder);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  absl::Status Write(absl::string_view bytes);
  // The PackageDigest of what was unpacked. DataLoss when the archive has no end.
  absl::StatusOr<std::string> Finish();

 private:
  class Tar;
  const std::unique_ptr<z_stream_s> stream_;
  const std::unique_ptr<Tar> tar_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace muster::vertex
