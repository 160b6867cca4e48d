// The process that runs and supervises the Jupyter of one notebook.
#pragma once

#include <string>

namespace muster::jobs {

// The body of the hidden command that jobs/notebook/session.h starts: runs the Jupyter that
// launch.json in `folder` describes, with the environment of this process, until it ends or is
// stopped. Returns the exit code.
//
// `report_fd`, standard input, is a socket to the process that started this one. Messages go there
// as lines of JSON:
//
//   {"ready": URL}    Jupyter answers
//   {"error": TEXT}   it could not be started
//   {"ended": TEXT, "ok": BOOL}
//
// The server receives lines: "stop" (SIGTERM) and "kill" (SIGKILL). End of file stops it. A
// detached one closes the socket once it is ready. The control socket in the folder
// (supervise/control.h) takes {"op": "status"} and {"op": "stop"}.
//
//          Jupyter answers             stop, end of file
//   starting ----------> ready ---------------------------> stopping
//      |                   |                                   |  exit, or SIGKILL after a while
//      | exit, timeout     | exit                              v
//      +-------------------+---------------------------------> ended: every descendant is killed
int ServeNotebook(const std::string& folder, int report_fd);

}  // namespace muster::jobs
