// Resource quantities of pods: "500m", "1Gi", "2".
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "k8s/resource.h"

namespace muster::k8s {

// A non-negative quantity with a resolution of 1e-9, like that of the API server.
class Quantity {
 public:
  // Returns nullopt if `text` is not a quantity, is negative, or is too large to be summed.
  static std::optional<Quantity> Parse(absl::string_view text);
  // Parses a value of a manifest, which may be a number.
  static std::optional<Quantity> Of(const Json& value);

  Quantity& operator+=(const Quantity& other);
  // Returns the canonical form: no fraction, and the largest suffix that allows it. The suffix is
  // binary if that of the first summand was.
  std::string ToString() const;

 private:
  using Nano = __int128;

  Nano nano_ = 0;
  bool binary_ = false;
};

}  // namespace muster::k8s
