#include "platform/agent_program.h"

#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"

namespace muster::platform {

absl::StatusOr<AgentProgram> FindAgentProgram(const std::string& muster) {
  AgentProgram agent{.path = base::JoinPath(base::FolderOf(muster), "muster-agent")};
  const auto content = base::ReadFile(agent.path);
  if (!content.ok()) {
    return absl::NotFoundError(absl::StrCat(
        agent.path, " is missing; install it beside muster: it is the program that starts tasks ",
        "on other machines"));
  }
  agent.sha256 = base::Sha256Hex(*content);
  agent.size = static_cast<int64_t>(content->size());
  return agent;
}

}  // namespace muster::platform
