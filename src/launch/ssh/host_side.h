// What a host does for the one who submits a job, before an agent takes over.
#pragma once

namespace muster::ssh {

// Answers the messages of launch/ssh/session.h until `in` ends. Returns an exit code.
int ServeSession(int in, int out);

}  // namespace muster::ssh
