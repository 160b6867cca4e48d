// Parses arbitrary bytes as YAML. Every parsed document has a JSON form.
#include <cstddef>
#include <cstdint>

#include "codec/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  muster::codec::Diagnostics diagnostics("f.yaml");
  const auto documents = muster::codec::ParseYaml(text, {}, diagnostics);
  for (const muster::codec::Node& document : documents) {
    muster::codec::Describe(document);
    // Strict: throws, and so ends the fuzzer, if a scalar is not UTF-8.
    muster::codec::ToJson(document).dump();
  }
  return 0;
}
