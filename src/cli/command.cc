#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/suggest.h"

namespace muster::cli {
namespace {

constexpr char kDefaultGroup[] = "Options";  // the default of CLI11

void SetPresence(CLI::Option* option, Presence presence) {
  if (presence == Presence::kRequired) option->required();
}

// Returns the name with those of all parents: "muster jobs prune"; "" if `app` is null.
std::string FullName(const CLI::App* app) {
  if (app == nullptr) return "";
  const std::string before = FullName(app->get_parent());
  return before.empty() ? app->get_name() : absl::StrCat(before, " ", app->get_name());
}

// Replaces the validators of CLI11, whose messages print the largest value of the type.
template <typename Number>
CLI::Validator WholeNumber() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
          return absl::ascii_isdigit(static_cast<unsigned char>(c));
        });
        if (!digits) return absl::StrCat("'", text, "' must be a whole number, 0 or more");
        Number number = 0;
        return absl::SimpleAtoi(text, &number) ? "" : absl::StrCat(text, " is too large");
      },
      /*validator_desc=*/"");
}

}  // namespace

Command::Command(const std::string& name, const std::string& description)
    : owned_(std::make_unique<CLI::App>(description, name)), app_(owned_.get()) {
  app_->require_subcommand(1);
}

Command::Command(CLI::App* app) : app_(app) {}

Command::~Command() = default;

Command& Command::AddCommand(const std::string& name, const std::string& description) {
  commands_.emplace_back(new Command(app_->add_subcommand(name, description)));
  return *commands_.back();
}

void Command::Hide() { app_->group(""); }

void Command::Argument(const std::string& name, std::string* value, const std::string& description,
                       Presence presence) {
  SetPresence(app_->add_option(name, *value, description), presence);
}

void Command::Argument(const std::string& name, std::vector<std::string>* values,
                       const std::string& description, Presence presence) {
  SetPresence(app_->add_option(name, *values, description), presence);
}

void Command::Argument(const std::string& name, int* value, const std::string& description) {
  app_->add_option(name, *value, description)->check(WholeNumber<int>());
}

void Command::Rest(const std::string& name, std::vector<std::string>* words,
                   const std::string& description) {
  rest_ = words;
  rest_info_ = {.names = absl::StrCat("-- ", name), .description = description, .group = group_};
  // CLI11 has no such option, so the help shows it below the others.
  Footer(absl::StrCat("\n", rest_info_.names, "\n  ", description));
}

void Command::Flag(const std::string& names, bool* value, const std::string& description) {
  Grouped(app_->add_flag(names, *value, description));
}

void Command::HiddenFlag(const std::string& names, bool* value) {
  app_->add_flag(names, *value)->group("");
}

void Command::Option(const std::string& names, std::string* value, const std::string& description,
                     const std::vector<std::string>& choices) {
  CLI::Option* option = Grouped(app_->add_option(names, *value, description));
  if (!value->empty()) option->capture_default_str();
  if (!choices.empty()) option->check(CLI::IsMember(choices));
}

void Command::Option(const std::string& names, int* value, const std::string& description) {
  CLI::Option* option = Grouped(app_->add_option(names, *value, description));
  option->check(WholeNumber<int>());
  if (*value >= 0) option->capture_default_str();
}

void Command::Option(const std::string& names, int64_t* value, const std::string& description) {
  Grouped(app_->add_option(names, *value, description))->check(WholeNumber<int64_t>());
}

void Command::Option(const std::string& names, std::vector<std::string>* values,
                     const std::string& description) {
  Grouped(app_->add_option(names, *values, description))->type_size(1)->allow_extra_args(false);
}

CLI::Option* Command::Grouped(CLI::Option* option) const {
  if (!group_.empty()) option->group(group_);
  return option;
}

void Command::Exclude(const std::string& one, const std::string& other) {
  app_->get_option(one)->excludes(app_->get_option(other));
}

void Command::Footer(const std::string& text) { app_->footer(text); }

void Command::Version(const std::string& version) { app_->set_version_flag("--version", version); }

absl::StatusOr<int> Command::Run(int argc, char** argv) {
  try {
    app_->parse(TakeRest(argc, argv), argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      // stdout instead of std::cout: CheckOutput() detects write errors of stdout.
      std::ostringstream text;
      const int code = app_->exit(error, text, text);
      std::fputs(text.str().c_str(), stdout);
      return code;
    }
    return absl::InvalidArgumentError(Explain(error.what(), argc, argv));
  }
  return Called()->body_();
}

int Command::TakeRest(int argc, char** argv) {
  const Command* command = this;
  int next = 1;
  while (next < argc && command->Find(argv[next]) != nullptr) command = command->Find(argv[next++]);
  if (command->rest_ == nullptr) return argc;
  const auto found = std::find(argv + next, argv + argc, absl::string_view("--"));
  if (found != argv + argc) command->rest_->assign(found + 1, argv + argc);
  return static_cast<int>(found - argv);
}

// Returns the innermost selected command.
const Command* Command::Called() const {
  for (const auto& command : commands_) {
    if (command->app_->parsed()) return command->Called();
  }
  return this;
}

// CLI11 lists the unparsed words. For a mistyped command, returns the closest name instead.
std::string Command::Explain(const std::string& complaint, int argc, char** argv) const {
  const Command* called = Called();
  const std::string topic = FullName(called->app_);
  // The word that follows the names of the command and its parents.
  const auto next = std::count(topic.begin(), topic.end(), ' ') + 1;
  const auto advice = called->advice_.find(next < argc ? argv[next] : "");
  if (advice != called->advice_.end()) {
    return absl::StrCat("there is no command `", topic, " ", advice->first, "`: ", advice->second);
  }
  if (called != this) {
    return absl::StrCat(complaint, "; `", name(), " help ", topic.substr(name().size() + 1),
                        "` shows the usage");
  }
  if (argc < 2 || argv[1][0] == '-')
    return absl::StrCat(complaint, "; `muster help` lists the commands");
  std::vector<std::string> names;
  for (const Command* command : commands()) names.push_back(command->name());
  return absl::StrCat("unknown command '", argv[1], "'", base::DidYouMean(argv[1], names),
                      "; `muster help` lists them");
}

std::string Command::name() const { return app_->get_name(); }
std::string Command::description() const { return app_->get_description(); }

// App::help() would return the help of the selected subcommand, here `help` itself.
std::string Command::Help() const {
  return app_->get_formatter()->make_help(app_, FullName(app_), CLI::AppFormatMode::Normal);
}

std::vector<const Command*> Command::commands() const {
  std::vector<const Command*> shown;
  for (const auto& command : commands_) {
    if (!command->app_->get_group().empty()) shown.push_back(command.get());
  }
  return shown;
}

const Command* Command::Find(const std::string& name) const {
  for (const Command* command : commands()) {
    if (command->name() == name) return command;
  }
  return nullptr;
}

std::vector<Command::OptionInfo> Command::options() const {
  std::vector<OptionInfo> shown;
  if (rest_ != nullptr) shown.push_back(rest_info_);
  for (const std::string& group : app_->get_groups()) {
    for (const CLI::Option* option : app_->get_options()) {
      if (group.empty() || option->get_group() != group || option == app_->get_help_ptr()) continue;
      shown.push_back({.names = option->get_name(/*positional=*/true, /*all_options=*/true),
                       .description = option->get_description(),
                       .long_names = option->get_lnames(),
                       .group = group == kDefaultGroup ? "" : group});
    }
  }
  return shown;
}

}  // namespace muster::cli
