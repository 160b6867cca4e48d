// A cache on this machine of remote files.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/storage.h"

namespace muster::storage {

// Returns the cache folder: $MUSTER_CACHE, else UserCacheFolder().
std::string CacheFolder();

// Returns the folder of `cache` for the bucket or cluster of `url`.
std::string CacheFolderOf(const Url& url, const std::string& cache);

// Copies the file, the files matching a pattern, or the folder at `url` to `cache`. Returns the
// local path, pattern or folder. Skips files whose copy has the same size and time as the original;
// removes copies whose original is gone. One process copies; concurrent ones for the same URL wait
// and reuse its copy. Calls `log` with progress messages. Returns NotFound if there is nothing at
// `url`, ResourceExhausted if it does not fit on the disk, PermissionDenied if other users of this
// machine may write to the cache.
absl::StatusOr<std::string> LocalCopy(Storage& storage, const Url& url, const std::string& cache,
                                      const std::function<void(const std::string&)>& log);

// Returns a local path for `location`: the path itself, or that of a LocalCopy() in CacheFolder()
// if it is a remote URL.
absl::StatusOr<std::string> FetchToLocal(const std::string& location,
                                         const std::function<void(const std::string&)>& log);

}  // namespace muster::storage
