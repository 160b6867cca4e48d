// The entry point of the command line.
#pragma once

#include <vector>

#include "platform/registration.h"

namespace muster::cli {

// Implements main() of a program with these platforms, the default one first. Returns the exit
// code. Catches all exceptions of type std::exception.
int Main(int argc, char** argv, std::vector<platform::Registration> platforms);

}  // namespace muster::cli
