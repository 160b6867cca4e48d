// ReadTfConfig on any bytes: what it accepts, it writes so that it reads the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cluster/tf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = muster::ReadTfConfig(text);
  if (!config.ok()) return 0;
  muster::IsChief(*config);
  const auto again = muster::ReadTfConfig(muster::WriteTfConfig(*config));
  if (!again.ok() || !(*again == *config)) std::abort();
  return 0;
}
