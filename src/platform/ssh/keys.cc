#include "platform/ssh/keys.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "platform/ssh/agent.h"
#include "process/unix_socket.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kRenewInterval = absl::Hours(1);
constexpr absl::Duration kLeaseTimeout = absl::Hours(24);

std::string KeysOf(const std::string& folder) { return base::JoinPath(folder, "tls"); }

}  // namespace

void KeyLease::Advance(absl::Time now) {
  if (now < renew_at_) return;
  renew_at_ = now + kRenewInterval;
  const std::array<timespec, 2> times = {absl::ToTimespec(now), absl::ToTimespec(now)};
  ::utimensat(AT_FDCWD, KeysOf(folder_).c_str(), times.data(), 0);
}

void RemoveKeys(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(KeysOf(folder), ignored);
}

void RemoveAbandonedKeys(const std::string& jobs, const std::string& node, absl::Time now) {
  std::error_code ignored;
  for (const auto& job : std::filesystem::directory_iterator(jobs, ignored)) {
    const std::string folder = job.path().string();
    struct stat info {};
    if (!absl::EndsWith(folder, absl::StrCat("@", node)) ||
        ::stat(KeysOf(folder).c_str(), &info) != 0) {
      continue;
    }
    // An agent that answers keeps its keys even if the lease was not renewed.
    const bool old = now - absl::FromTimeT(info.st_mtime) > kLeaseTimeout;
    if (old && !process::ConnectTo(folder, kAgentSocket).ok()) RemoveKeys(folder);
  }
}

}  // namespace muster::ssh
