#include "base/variables.h"

#include <cstdlib>

namespace muster::base {

Variables ProcessVariables() {
  return [](const std::string& name) -> std::string {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
  };
}

}  // namespace muster::base
