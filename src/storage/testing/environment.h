// The environment of a storage under test.
#pragma once

#include <map>
#include <string>

#include "base/variables.h"

namespace muster::storage {

// These, and no others.
Variables VariablesOf(std::map<std::string, std::string> values);

// Servers of a test are on this machine.
void ForgetProxies();

}  // namespace muster::storage
