// muster completion: completion scripts for shells, and the candidates that they request.
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace muster::cli {
namespace {

// The scripts pass the words typed so far to `muster completion --candidates`. If it prints
// nothing, they complete file names.
constexpr char kBash[] = R"(_muster() {
  local IFS=$'\n'
  COMPREPLY=($(muster completion --candidates -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
}
complete -F _muster muster
)";
constexpr char kZsh[] = R"(#compdef muster
_muster() {
  local -a candidates
  candidates=("${(@f)$(muster completion --candidates -- "${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}")
  if [[ -n "${candidates[1]}" ]]; then compadd -a candidates; else _files; fi
}
compdef _muster muster
)";
constexpr char kFish[] = R"(complete -c muster -f -a '(
  set -l words (commandline -opc)[2..] (commandline -ct)
  muster completion --candidates -- $words 2>/dev/null; or __fish_complete_path (commandline -ct))'
)";

struct CompletionOptions {
  bool candidates = false;
  std::vector<std::string> words;
};

bool TakesJob(const Command& command) {
  const std::set<std::string> names = {"show", "logs",     "stop",    "resume",
                                       "wait", "evaluate", "predict", "env"};
  return names.contains(command.name());
}

void AddJobs(Context& context, std::set<std::string>& candidates) {
  constexpr int kNewest = 200;
  const auto history = context.jobs().history();
  if (!history.ok()) return;
  const auto jobs = (*history)->ListJobs({.limit = kNewest});
  if (!jobs.ok()) return;
  for (const job::JobRecord& job : *jobs) {
    candidates.insert(job.id);
    candidates.insert(job.name);
  }
}

// Returns the completions of the last word.
std::vector<std::string> Candidates(const Command& program, Context& context,
                                    const std::vector<std::string>& words) {
  const Command* command = &program;
  const std::string last = words.empty() ? "" : words.back();
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (const Command* next = command->Find(words[i]); next != nullptr) command = next;
  }
  std::set<std::string> all;
  for (const Command* sub : command->commands()) all.insert(sub->name());
  if (command->name() == "help") {
    for (const Command* sub : program.commands()) all.insert(sub->name());
  }
  if (command->name() == "init") all = {"mnist", "pytorch", "tensorflow", "custom"};
  if (command->name() == "completion") all = {"bash", "zsh", "fish"};
  if (TakesJob(*command)) AddJobs(context, all);
  if (absl::StartsWith(last, "-")) {
    for (const Command::OptionInfo& option : command->options()) {
      for (const std::string& name : option.long_names) all.insert("--" + name);
    }
  }
  std::vector<std::string> matching;
  for (const std::string& candidate : all) {
    if (absl::StartsWith(candidate, last)) matching.push_back(candidate);
  }
  return matching;
}

absl::StatusOr<std::string> ScriptFor(const std::vector<std::string>& words) {
  const std::string shell = words.size() == 1 ? words[0] : "";
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return absl::InvalidArgumentError("missing shell; expected bash, zsh or fish");
}

}  // namespace

void AddCompletionCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("completion", "Print a completion script for a shell");
  auto options = std::make_shared<CompletionOptions>();
  command.Argument("SHELL", &options->words, "bash, zsh or fish");
  command.HiddenFlag("--candidates", &options->candidates);
  command.OnCall([&program, &context, options]() -> absl::StatusOr<int> {
    if (!options->candidates) {
      const auto script = ScriptFor(options->words);
      if (!script.ok()) return script.status();
      context.out().PrintData(*script);
      return kSuccess;
    }
    const auto candidates = Candidates(program, context, options->words);
    for (const std::string& candidate : candidates) context.out().PrintLine(candidate);
    return candidates.empty() ? kFailure : kSuccess;
  });
}

}  // namespace muster::cli
