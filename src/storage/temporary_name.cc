#include "storage/temporary_name.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace muster::storage {

std::string TemporaryName() {
  std::random_device random;
  return absl::StrCat(kTemporaryPrefix, absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace muster::storage
