// Signal dispositions of this process.
#pragma once

namespace muster::process {

// Restores the default disposition of every signal and unblocks all. For use before exec(), which
// keeps ignored and blocked signals. Async-signal-safe, so it may run between fork and exec.
void ResetSignals();

}  // namespace muster::process
