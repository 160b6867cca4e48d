// Reproducible compressed tar archives: the same files give the same bytes on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/bytes/digest.h"
#include "base/files/confined_folder.h"
#include "worktree/worktree.h"

struct z_stream_s;

namespace muster::worktree {

using ByteSink = std::function<absl::Status(absl::string_view)>;

// Writes an uncompressed tar of `files`, a listing of `root`, in that order and with the same owner
// and time for all. Returns Aborted if a file has changed since it was hashed.
absl::Status WriteTar(const std::string& root, const std::vector<WorkFile>& files,
                      const ByteSink& sink);

// Returns true if every tar program restores the name and the link target of the file. For longer
// ones the program must read pax extensions, which BusyBox does not.
bool FitsUstar(const WorkFile& file);

// Compresses a stream. Not thread-safe.
class Gzip {
 public:
  explicit Gzip(ByteSink sink);
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  absl::Status Write(absl::string_view bytes);
  // Writes the end of the stream. REQUIRES: called once, after the last Write().
  absl::Status Finish();

 private:
  absl::Status Run(absl::string_view bytes, int flush);

  const ByteSink sink_;
  const std::unique_ptr<z_stream_s> stream_;
  std::string buffer_;
};

// The SHA-256 that names a package. Covers path, mode, content and link target of its entries, in
// order.
class PackageDigest {
 public:
  PackageDigest();
  // REQUIRES: `file` has its hash.
  void Add(const WorkFile& file);
  std::string Finish() { return sum_.Finish(); }

 private:
  base::Sha256 sum_;
};

// Unpacks a compressed archive below a folder. Never writes outside the folder and never replaces a
// file, whatever the archive contains and whatever links an earlier archive created: such an
// archive is DataLoss. Links are created last. Not thread-safe.
class Unpacker {
 public:
  // `folder` must outlive this.
  explicit Unpacker(base::ConfinedFolder& folder);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Receives the next bytes; the split into calls does not matter.
  absl::Status Write(absl::string_view bytes);
  // Returns the PackageDigest of the unpacked entries, or DataLoss if the archive is truncated.
  absl::StatusOr<std::string> Finish();

 private:
  class Tar;
  const std::unique_ptr<z_stream_s> stream_;
  const std::unique_ptr<Tar> tar_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace muster::worktree
