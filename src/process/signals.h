// Signal dispositions of this process.
#pragma once

namespace muster {

// Gives every signal its default disposition and unblocks all, as a program expects that is about
// to be executed: ignored ones would stay so. Makes only system calls.
void ResetSignals();

}  // namespace muster
