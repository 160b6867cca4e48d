#include "cli/untrusted_file.h"

#include "base/regular_file.h"

namespace muster::cli {

std::optional<std::string> ReadUntrustedFile(const std::string& path) {
  constexpr int64_t kMaxBytes = 64 << 10;
  auto text = ReadRegularFile(path, kMaxBytes);
  if (!text.ok() || text->empty()) return std::nullopt;
  return *std::move(text);
}

}  // namespace muster::cli
