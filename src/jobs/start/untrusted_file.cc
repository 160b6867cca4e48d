#include "jobs/start/untrusted_file.h"

#include "base/files/regular_file.h"

namespace muster::jobs {

std::optional<std::string> ReadUntrustedFile(const std::string& path) {
  constexpr int64_t kMaxBytes = 64 << 10;
  auto text = base::ReadRegularFile(path, kMaxBytes);
  if (!text.ok() || text->empty()) return std::nullopt;
  return *std::move(text);
}

}  // namespace muster::jobs
