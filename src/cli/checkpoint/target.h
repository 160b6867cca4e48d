// Resolves the PATH argument of a checkpoint command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/store.h"
#include "cli/context.h"

namespace muster::cli {

class RemoteModelDir;

struct CheckpointTarget {
  enum class Kind { kModelDir, kCheckpoint, kFile };
  Kind kind = Kind::kModelDir;
  std::string name;  // for messages
  std::string path;  // local; for a URL, the folder into which checkpoints are downloaded
  std::shared_ptr<RemoteModelDir> remote;

  // REQUIRES: kind is kModelDir.
  absl::StatusOr<std::vector<checkpoint::Entry>> List() const;
  absl::StatusOr<checkpoint::Best> ReadBest() const;
  // Downloads a checkpoint of a URL: a step, best or latest. Returns DataLoss if it is damaged.
  absl::Status Fetch(const std::string& which) const;
};

// Resolves a URL, a path or a job. A name without '/' is the job of that name or id if there is
// one; ./NAME then names a folder of that name.
absl::StatusOr<CheckpointTarget> FindCheckpoint(Context& context, const std::string& reference);

}  // namespace muster::cli
