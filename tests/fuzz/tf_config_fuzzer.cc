// Parses arbitrary bytes as TF_CONFIG. Accepted input survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cluster/tf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = muster::cluster::ReadTfConfig(text);
  if (!config.ok()) return 0;
  muster::cluster::IsChief(*config);
  const auto again = muster::cluster::ReadTfConfig(muster::cluster::WriteTfConfig(*config));
  if (!again.ok() || !(*again == *config)) std::abort();
  return 0;
}
