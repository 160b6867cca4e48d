// The command line as a whole.
#pragma once

namespace muster::cli {

// The body of main(). Returns the exit code.
int Main(int argc, char** argv);

}  // namespace muster::cli
