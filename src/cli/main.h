// The entry point of the command line.
#pragma once

namespace muster::cli {

// Implements main(). Returns the exit code. Catches all exceptions of type std::exception.
int Main(int argc, char** argv);

}  // namespace muster::cli
