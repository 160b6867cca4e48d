#include "cli/untrusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::cli {

std::optional<std::string> ReadUntrustedFile(const std::string& path) {
  constexpr int64_t kMaxBytes = 64 << 10;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (info.st_size == 0 || info.st_size > kMaxBytes) return std::nullopt;
  auto text = ReadAll(fd.get(), kMaxBytes);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

}  // namespace muster::cli
