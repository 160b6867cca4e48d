// Parses arbitrary bytes as a manifest. Accepted input survives a round trip, and no
// file name leads out of the folder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "checkpoint/format.h"
#include "checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = muster::checkpoint::ParseManifest(text);
  if (!manifest.ok()) return 0;
  for (const auto& file : manifest->files) {
    if (!muster::checkpoint::IsPlainFileName(file.name)) std::abort();
    muster::checkpoint::ParseShardFile(file.name);
  }
  if (manifest->bytes() < 0) std::abort();
  const auto again = muster::checkpoint::ParseManifest(muster::checkpoint::ToJson(*manifest));
  if (!again.ok() || again->files.size() != manifest->files.size() ||
      again->step != manifest->step || again->bytes() != manifest->bytes()) {
    std::abort();
  }
  return 0;
}
