// The program that Muster brings to hosts.
#pragma once

namespace muster::ssh {

// muster-agent session            answers one message after the other: files, checks (host_side.h)
// muster-agent attach FOLDER JOB  hands bytes between standard input and output and the agent of a
//                                 job, which is started when there is none
int AgentMain(int argc, char** argv);

}  // namespace muster::ssh
