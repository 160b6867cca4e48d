// Setup service on a host, used before a job's agent starts.
#pragma once

namespace muster::ssh {

// Answers the requests of setup_client.h until `in` ends. Returns an exit code.
int ServeSetup(int in, int out);

}  // namespace muster::ssh
