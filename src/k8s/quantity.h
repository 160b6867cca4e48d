// Quantities of resources, as pods request them: "500m", "1Gi", "2".
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "k8s/resource.h"

namespace muster::k8s {

// Exact to a billionth, like the API server's.
class Quantity {
 public:
  // nullopt when `text` is none, is negative, or is too large to add up.
  static std::optional<Quantity> Parse(absl::string_view text);
  // Of a manifest's value, which may be a number.
  static std::optional<Quantity> Of(const Json& value);

  Quantity& operator+=(const Quantity& other);
  // The canonical form: no fraction and the largest suffix; powers of 1024 when the first summand
  // had such a suffix.
  std::string ToString() const;

 private:
  using Nano = __int128;

  Nano nano_ = 0;
  bool binary_ = false;
};

}  // namespace muster::k8s
