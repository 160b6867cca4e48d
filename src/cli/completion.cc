// muster completion: scripts for the shells, and the candidates that they ask for.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "cli/commands.h"

namespace muster::cli {
namespace {

// The scripts only pass on the words typed so far; what may follow is decided below.
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

bool IsShown(const CLI::App* command) { return !command->get_group().empty(); }

bool TakesJob(const CLI::App& command) {
  const std::set<std::string> names = {"show", "logs", "stop", "resume", "env"};
  return names.contains(command.get_name());
}

void AddJobs(Context& context, std::set<std::string>& candidates) {
  constexpr int kNewest = 200;
  const auto history = context.history();
  if (!history.ok()) return;
  const auto jobs = (*history)->ListJobs({.limit = kNewest});
  if (!jobs.ok()) return;
  for (const JobRecord& job : *jobs) {
    candidates.insert(job.id);
    candidates.insert(job.name);
  }
}

// What may stand in the place of the last word.
std::vector<std::string> Candidates(const CLI::App& app, Context& context,
                                    const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  const std::string last = words.empty() ? "" : words.back();
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    for (const CLI::App* sub : command->get_subcommands(IsShown)) {
      if (sub->get_name() == words[i]) command = sub;
    }
  }
  std::set<std::string> all;
  for (const CLI::App* sub : command->get_subcommands(IsShown)) all.insert(sub->get_name());
  if (command->get_name() == "help") {
    for (const CLI::App* sub : app.get_subcommands(IsShown)) all.insert(sub->get_name());
  }
  if (command->get_name() == "init") all = {"mnist", "pytorch", "tensorflow", "custom"};
  if (TakesJob(*command)) AddJobs(context, all);
  if (absl::StartsWith(last, "-")) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) all.insert("--" + name);
    }
  }
  std::vector<std::string> matching;
  for (const std::string& candidate : all) {
    if (absl::StartsWith(candidate, last)) matching.push_back(candidate);
  }
  return matching;
}

}  // namespace

void AddCompletionCommand(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  auto options = std::make_shared<CompletionOptions>();
  command->add_option("SHELL", options->words, "bash, zsh or fish");
  command->add_flag("--candidates", options->candidates)->group("");
  command->callback([&app, &context, &exit_code, options] {
    if (options->candidates) {
      const auto candidates = Candidates(app, context, options->words);
      for (const std::string& candidate : candidates) context.out().PrintLine(candidate);
      exit_code = candidates.empty() ? kFailure : kSuccess;
      return;
    }
    const std::string shell = options->words.size() == 1 ? options->words[0] : "";
    if (shell == "bash") {
      context.out().Print(kBash);
    } else if (shell == "zsh") {
      context.out().Print(kZsh);
    } else if (shell == "fish") {
      context.out().Print(kFish);
    } else {
      exit_code = Fail(context, absl::InvalidArgumentError("which shell? bash, zsh or fish"));
    }
  });
}

}  // namespace muster::cli
