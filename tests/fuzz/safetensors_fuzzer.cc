// Parses arbitrary bytes as a safetensors header. Accepted tensors cover the file exactly, and
// survive a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "checkpoint/safetensors.h"

using muster::base::TensorSpec;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = muster::checkpoint::ParseHeader(file, static_cast<int64_t>(size));
  if (!header.ok()) return 0;
  std::vector<TensorSpec> specs;
  int64_t place = 0;
  for (const auto& tensor : header->tensors) {
    if (tensor.begin != place) std::abort();
    place += tensor.spec.bytes();
    specs.push_back(tensor.spec);
  }
  if (header->data_start + place != static_cast<int64_t>(size)) std::abort();
  const auto text = muster::checkpoint::WriteHeader(specs, header->metadata);
  if (!text.ok()) std::abort();
  const auto again =
      muster::checkpoint::ParseHeader(*text, static_cast<int64_t>(text->size()) + place);
  if (!again.ok() || again->metadata != header->metadata) std::abort();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!(again->tensors[i].spec == specs[i])) std::abort();
  }
  return 0;
}
