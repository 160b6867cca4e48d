// muster help: prints the help of a command. With --man, which the build uses, prints a manual
// page.
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/text/suggest.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace muster::cli {
namespace {

std::string Roff(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  return absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'") ? "\\&" + escaped
                                                                          : escaped;
}

// Appends a command, its options and, recursively, its subcommands.
void AppendManual(const Command& command, const std::string& name, std::string& page) {
  absl::StrAppend(&page, ".SS ", Roff(name), "\n", Roff(command.description()), ".\n");
  std::string group;
  for (const Command::OptionInfo& option : command.options()) {
    if (option.group != group) absl::StrAppend(&page, ".PP\n", Roff(option.group), ":\n");
    group = option.group;
    absl::StrAppend(&page, ".TP\n.B ", Roff(option.names), "\n", Roff(option.description), "\n");
  }
  for (const Command* sub : command.commands()) {
    AppendManual(*sub, absl::StrCat(name, " ", sub->name()), page);
  }
}

std::string ManualPage(const Command& program) {
  std::string page = absl::StrCat(
      ".TH MUSTER 1 \"\" \"muster ", MUSTER_VERSION, "\" \"User Commands\"\n", ".SH NAME\n",
      "muster \\- run distributed training: describe a job once, run it anywhere, manage it\n",
      ".SH SYNOPSIS\n", ".B muster\n.I COMMAND\n[options]\n", ".SH DESCRIPTION\n",
      "Muster runs distributed training. One file describes a job: its roles (chief, "
      "worker, ps, evaluator, "
      "or any name), their commands and policies. One program runs it, shows it, "
      "stops it and resumes it.\n"
      ".PP\nA JOB is a name, an id, or a unique prefix of either.\n",
      ".SH COMMANDS\n");
  for (const Command* command : program.commands()) AppendManual(*command, command->name(), page);
  absl::StrAppend(
      &page, ".SH EXIT STATUS\n", ".TP\n.B 0\nthe command, or the job, succeeded\n",
      ".TP\n.B 1\nthe job failed, or the command failed\n",
      ".TP\n.B 2\nwrong usage or an invalid file\n", ".TP\n.B 130\ninterrupted\n",
      ".SH ENVIRONMENT\n", ".TP\n.B MUSTER_HOME\n",
      "where jobs and their history are kept (~/.local/share/muster)\n",
      ".TP\n.B NO_COLOR\ndisables colours if set\n",
      ".SH FILES\n.TP\n.B $MUSTER_HOME/jobs/ID/\nthe logs and the submission of a job\n",
      ".TP\n.B $MUSTER_HOME/history.db\nevery job, its tasks and events\n");
  return page;
}

absl::StatusOr<std::string> HelpFor(const Command& program, const std::vector<std::string>& topic) {
  const Command* command = &program;
  for (const std::string& word : topic) {
    const Command* next = command->Find(word);
    if (next == nullptr) {
      std::vector<std::string> names;
      for (const Command* sub : command->commands()) names.push_back(sub->name());
      return absl::InvalidArgumentError(
          absl::StrCat("no command '", word, "'", base::DidYouMean(word, names)));
    }
    command = next;
  }
  return command->Help();
}

}  // namespace

void AddHelpCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("help", "Show the commands, or the help of one");
  auto topic = std::make_shared<std::vector<std::string>>();
  auto manual = std::make_shared<bool>(false);
  command.Argument("COMMAND", topic.get(), "The command (default: list all)");
  command.HiddenFlag("--man", manual.get());
  command.OnCall([&program, &context, topic, manual]() -> absl::StatusOr<int> {
    const auto text = *manual ? ManualPage(program) : HelpFor(program, *topic);
    if (!text.ok()) return text.status();
    context.out().PrintData(*text);
    return kSuccess;
  });
}

}  // namespace muster::cli
