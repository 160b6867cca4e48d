#include "storage/testing/environment.h"

#include <cstdlib>
#include <utility>

namespace muster::storage {

base::Variables VariablesOf(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  };
}

void ForgetProxies() {
  for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"}) ::unsetenv(name);
}

}  // namespace muster::storage
