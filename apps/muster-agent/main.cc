#include "absl/strings/string_view.h"
#include "platform/ssh/agent_main.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/task_main.h"

int main(int argc, char** argv) {
  if (argc > 1 && absl::string_view(argv[1]) == muster::vertex::kTaskCommand) {
    return muster::vertex::MountedTaskMain(argc, argv);
  }
  return muster::ssh::AgentMain(argc, argv);
}
