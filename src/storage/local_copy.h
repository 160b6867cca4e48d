// Copies on this machine of files that are kept elsewhere.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/storage.h"

namespace muster::storage {

// Where copies are kept: $MUSTER_CACHE, else UserCacheFolder().
std::string CacheFolder();

// A folder of `cache` for what is at `url`, always the same.
std::string CacheFolderOf(const Url& url, const std::string& cache);

// Copies what a URL names, a file, a pattern or a folder with all that is below it, to `cache`; the
// path that names the same there. What is there with the size and time of the original is left
// alone; what is no longer at the URL is removed. Several processes that ask for the same take
// turns: one copies, the others find it done. NotFound when there is nothing; ResourceExhausted
// when it does not fit on the disk; PermissionDenied when another user of this machine may write
// to the copies. `log` hears what is copied.
absl::StatusOr<std::string> LocalCopy(Storage& storage, const Url& url, const std::string& cache,
                                      const std::function<void(const std::string&)>& log);

// A path of this machine for what `place` names: that of a LocalCopy in CacheFolder() when it is a
// URL of another storage.
absl::StatusOr<std::string> BringHere(const std::string& place,
                                      const std::function<void(const std::string&)>& log);

}  // namespace muster::storage
