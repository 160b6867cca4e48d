// The checkpoints of a model dir that is kept in a storage.
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

// Checkpoints are made and read on this machine; whole ones go there and come from there. One that
// has a manifest is complete: that is written last and removed first. Any number of readers, one
// job that writes. Thread-safe.
class RemoteStore {
 public:
  // `storage` outlives this.
  RemoteStore(storage::Storage& storage, storage::Url model_dir);

  // Of the complete ones, in order.
  absl::StatusOr<std::vector<int64_t>> Steps();
  // The complete ones, as List() of store.h tells them; whose manifest is damaged, too.
  absl::StatusOr<std::vector<Entry>> List();
  // NotFound when there is no complete one of that step.
  absl::StatusOr<Manifest> ReadManifest(int64_t step);
  absl::StatusOr<nlohmann::json> ReadState(int64_t step);

  // Copies one into a model dir of this machine, unless it is there. Nothing is seen of it before
  // all of it has come and was held to its hashes.
  absl::Status Fetch(int64_t step, const std::string& model_dir);
  // Copies a complete one of this machine there, in place of one of the same step, unless it is
  // there.
  absl::Status Send(const std::string& folder);

  // As for a model dir of this machine: see store.h. What dead writers left is removed, too.
  absl::Status Retain(int keep);
  absl::Status SetAside(int64_t after_step);
  absl::StatusOr<std::string> SetRunAside();
  absl::StatusOr<Best> ReadBest();

 private:
  struct Found {
    std::vector<int64_t> complete;
    std::vector<int64_t> partial;  // without a manifest
  };

  absl::StatusOr<Found> Look();
  storage::Url FolderOf(int64_t step) const;
  absl::StatusOr<std::string> ReadText(const storage::Url& url);
  absl::StatusOr<nlohmann::json> ReadObject(const storage::Url& url);
  absl::StatusOr<storage::FileSystem*> files() { return storage_.For(model_dir_); }
  absl::Status Remove(int64_t step);
  absl::StatusOr<storage::Url> FreeAside();
  absl::StatusOr<std::string> MoveAside(int64_t after_step,
                                        const std::vector<storage::FileInfo>& others);
  absl::Status Move(int64_t step, const storage::Url& to);
  storage::Url BestUrl() const;

  storage::Storage& storage_;
  const storage::Url model_dir_;
};

}  // namespace muster::checkpoint
