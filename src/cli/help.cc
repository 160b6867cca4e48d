// muster help: the help of a command; and, for the build, all of it as a manual page.
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/spelling.h"
#include "cli/commands.h"

namespace muster::cli {
namespace {

std::string Roff(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  return absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'") ? "\\&" + escaped
                                                                          : escaped;
}

bool IsShown(const CLI::App* command) { return !command->get_group().empty(); }

// One command: its usage, its options, then its own subcommands.
void AppendManual(const CLI::App& command, const std::string& name, std::string& page) {
  absl::StrAppend(&page, ".SS ", Roff(name), "\n", Roff(command.get_description()), ".\n");
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    absl::StrAppend(&page, ".TP\n.B ",
                    Roff(option->get_name(/*positional=*/true, /*all_options=*/true)), "\n",
                    Roff(option->get_description()), "\n");
  }
  for (const CLI::App* sub : command.get_subcommands(IsShown)) {
    AppendManual(*sub, absl::StrCat(name, " ", sub->get_name()), page);
  }
}

std::string ManualPage(const CLI::App& app) {
  std::string page =
      absl::StrCat(".TH MUSTER 1 \"\" \"muster ", MUSTER_VERSION, "\" \"User Commands\"\n",
                   ".SH NAME\n", "muster \\- describe a training job once, run it, manage it\n",
                   ".SH SYNOPSIS\n", ".B muster\n.I COMMAND\n[options]\n", ".SH DESCRIPTION\n",
                   "Muster runs distributed training. One file describes a job: its roles (chief, "
                   "worker, ps, evaluator, "
                   "or any name), their commands and policies. One program runs it, shows it, "
                   "stops it and resumes it.\n"
                   ".PP\nA JOB is a name, an id, or a unique prefix of either.\n",
                   ".SH COMMANDS\n");
  for (const CLI::App* command : app.get_subcommands(IsShown)) {
    AppendManual(*command, command->get_name(), page);
  }
  absl::StrAppend(
      &page, ".SH EXIT STATUS\n", ".TP\n.B 0\nthe command, or the job, succeeded\n",
      ".TP\n.B 1\nthe job failed, or the command could not do its work\n",
      ".TP\n.B 2\nwrong usage or an invalid file\n", ".TP\n.B 130\ninterrupted\n",
      ".SH ENVIRONMENT\n", ".TP\n.B MUSTER_HOME\n",
      "where jobs and their history are kept (~/.local/share/muster)\n",
      ".TP\n.B NO_COLOR\nno colours when it is set\n",
      ".SH FILES\n.TP\n.B $MUSTER_HOME/jobs/ID/\na job's logs and what it was started with\n",
      ".TP\n.B $MUSTER_HOME/history.db\nevery job, its tasks and events\n");
  return page;
}

absl::StatusOr<std::string> HelpFor(const CLI::App& app, const std::vector<std::string>& topic) {
  const CLI::App* command = &app;
  for (const std::string& word : topic) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : command->get_subcommands(IsShown)) {
      names.push_back(sub->get_name());
      if (sub->get_name() == word) next = sub;
    }
    if (next == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("no command '", word, "'", DidYouMean(word, names)));
    }
    command = next;
  }
  return command->help(topic.empty() ? "" : absl::StrCat("muster ", topic.back()));
}

}  // namespace

void AddHelpCommand(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* command = app.add_subcommand("help", "Tell more about a command");
  auto topic = std::make_shared<std::vector<std::string>>();
  auto manual = std::make_shared<bool>(false);
  command->add_option("COMMAND", *topic, "The command");
  command->add_flag("--man", *manual, "Print the manual page (roff)")->group("");
  command->callback([&app, &context, &exit_code, topic, manual] {
    if (*manual) {
      context.out().Print(ManualPage(app));
      return;
    }
    const auto text = HelpFor(app, *topic);
    if (text.ok()) {
      context.out().Print(*text);
    } else {
      exit_code = Fail(context, text.status());
    }
  });
}

}  // namespace muster::cli
