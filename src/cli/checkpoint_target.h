// What the PATH of a checkpoint command is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/store.h"
#include "cli/context.h"

namespace muster::cli {

class RemoteModelDir;

struct Target {
  enum class Kind { kModelDir, kCheckpoint, kFile };
  Kind kind = Kind::kModelDir;
  std::string name;  // for the user
  std::string path;  // on this machine; of a URL, a folder that checkpoints are fetched into
  std::shared_ptr<RemoteModelDir> remote;

  // Of a model dir.
  absl::StatusOr<std::vector<checkpoint::Entry>> List() const;
  absl::StatusOr<checkpoint::Best> ReadBest() const;
  // Brings what a URL has: a step, best or latest. DataLoss when it is damaged.
  absl::Status Fetch(const std::string& which) const;
};

// A URL, a path or a job. A bare name, without '/', is the job of that name or id if there is one:
// then a folder of that name is written ./NAME.
absl::StatusOr<Target> FindTarget(Context& context, const std::string& reference);

}  // namespace muster::cli
