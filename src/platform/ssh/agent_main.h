// Entry points of muster-agent, the program that Muster copies to hosts.
#pragma once

namespace muster::ssh {

// muster-agent session            serves setup requests: files, checks (setup_server.h)
// muster-agent attach FOLDER JOB  connects standard input and output to the job's agent; starts the
//                                 agent if there is none
int AgentMain(int argc, char** argv);

}  // namespace muster::ssh
