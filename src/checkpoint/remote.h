// The checkpoints of a model dir that is a URL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/manifest.h"
#include "checkpoint/store.h"
#include "nlohmann/json.hpp"
#include "storage/storage.h"

namespace muster::checkpoint {

// Uploads and downloads whole checkpoints; they are written and read on this machine. A remote
// checkpoint with a manifest is complete: the manifest is written last and deleted first. Supports
// any number of readers and one job that writes. Thread-safe.
class RemoteStore {
 public:
  // REQUIRES: `storage` outlives this object.
  RemoteStore(storage::Storage& storage, storage::Url model_dir);

  // Returns the steps of the complete checkpoints, in ascending order.
  absl::StatusOr<std::vector<int64_t>> Steps();
  // Returns the complete checkpoints, including those with a damaged manifest; see store.h.
  absl::StatusOr<std::vector<Entry>> List();
  // Return NotFound if there is no complete checkpoint of that step.
  absl::StatusOr<Manifest> ReadManifest(int64_t step);
  absl::StatusOr<nlohmann::json> ReadState(int64_t step);

  // Downloads a checkpoint into a local model dir, unless it is already there. It becomes visible
  // there only when it is complete and its checksums match.
  absl::Status Fetch(int64_t step, const std::string& model_dir);
  // Uploads a complete local checkpoint, replacing one of the same step, unless the same one is
  // already there.
  absl::Status Send(const std::string& folder);

  // As for a local model dir: see store.h. Retain() always keeps the best checkpoint, and removes
  // partial ones that are older than the newest complete one.
  absl::Status Retain(int keep);
  absl::Status SetAside(int64_t after_step);
  absl::StatusOr<std::string> SetRunAside();
  absl::StatusOr<Best> ReadBest();

 private:
  struct Found {
    std::vector<int64_t> complete;
    std::vector<int64_t> partial;  // without a manifest
  };

  absl::StatusOr<Found> Scan();
  storage::Url FolderOf(int64_t step) const;
  absl::StatusOr<std::string> ReadText(const storage::Url& url);
  absl::StatusOr<nlohmann::json> ReadObject(const storage::Url& url);
  absl::StatusOr<storage::FileSystem*> files() { return storage_.For(model_dir_); }
  absl::Status Remove(int64_t step);
  absl::StatusOr<storage::Url> UnusedSupersededFolder();
  absl::StatusOr<std::string> MoveAside(int64_t after_step,
                                        const std::vector<storage::FileInfo>& others);
  absl::Status Move(int64_t step, const storage::Url& to);
  storage::Url BestUrl() const;

  storage::Storage& storage_;
  const storage::Url model_dir_;
};

}  // namespace muster::checkpoint
