#include "platform/ssh/agent_main.h"

int main(int argc, char** argv) { return muster::ssh::AgentMain(argc, argv); }
