// A command of the command line, with its arguments and options. Wraps CLI11, whose header costs
// ten seconds of compilation in every file that includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace muster::cli {

enum class Presence { kOptional, kRequired };

// The variables passed to Argument, Option and Flag contain the defaults and receive the parsed
// values. The caller owns them and keeps them alive until the body has run; the body usually shares
// a struct of them. Not thread-safe.
class Command {
 public:
  using Body = std::function<absl::StatusOr<int>()>;  // returns the exit code

  struct OptionInfo {
    std::string names;  // as in the help: "-f,--follow", "JOB"
    std::string description;
    std::vector<std::string> long_names;  // "follow"; empty for an argument
    std::string group;                    // its heading in the help; "" = the default heading
  };

  // Creates the root command, which requires a subcommand.
  Command(const std::string& name, const std::string& description);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Adds a subcommand, owned by this command. Only the root requires a subcommand to be given.
  Command& AddCommand(const std::string& name, const std::string& description);
  // Omits the command from the help, the manual page and completion.
  void Hide();

  void Argument(const std::string& name, std::string* value, const std::string& description,
                Presence presence = Presence::kOptional);
  void Argument(const std::string& name, std::vector<std::string>* values,
                const std::string& description, Presence presence = Presence::kOptional);
  void Argument(const std::string& name, int* value, const std::string& description);
  // Takes the words after `--`, which no other command accepts. `name` is shown in the help.
  void Rest(const std::string& name, std::vector<std::string>* words,
            const std::string& description);
  void Flag(const std::string& names, bool* value, const std::string& description);
  void HiddenFlag(const std::string& names, bool* value);
  // Accepts only one of `choices`, unless that is empty.
  void Option(const std::string& names, std::string* value, const std::string& description,
              const std::vector<std::string>& choices = {});
  void Option(const std::string& names, int* value,
              const std::string& description);  // not negative
  void Option(const std::string& names, int64_t* value, const std::string& description);
  // May be repeated, with one value each time.
  void Option(const std::string& names, std::vector<std::string>* values,
              const std::string& description);
  // Sets the help heading of options and flags added from now on; "" = "Options".
  void Group(const std::string& heading) { group_ = heading; }
  // Makes two options mutually exclusive. REQUIRES: both have been added.
  void Exclude(const std::string& one, const std::string& other);
  // Answers a subcommand that does not exist, but that other programs have, with advice.
  void Advise(const std::string& word, const std::string& advice) { advice_[word] = advice; }
  void Footer(const std::string& text);
  void Version(const std::string& version);

  void OnCall(Body body) { body_ = std::move(body); }

  // Parses the command line and runs the body of the selected command. Returns its exit code or its
  // error, or InvalidArgument, with advice, if the command line is invalid.
  // REQUIRES: this is the root command.
  absl::StatusOr<int> Run(int argc, char** argv);

  std::string name() const;
  std::string description() const;
  std::string Help() const;
  std::vector<const Command*> commands() const;  // without hidden ones
  std::vector<OptionInfo> options() const;       // without hidden ones, ordered by group
  // Returns the direct subcommand of that name, or null if there is none or it is hidden.
  const Command* Find(const std::string& name) const;

 private:
  explicit Command(CLI::App* app);
  // Assigns an option to the current heading. Returns `option`.
  CLI::Option* Grouped(CLI::Option* option) const;
  const Command* Called() const;
  // Moves the words after `--` to the Rest() of the command that they are for. Returns the number
  // of the words before it.
  int TakeRest(int argc, char** argv);
  std::string Explain(const std::string& complaint, int argc, char** argv) const;

  std::unique_ptr<CLI::App> owned_;  // set only in the root
  CLI::App* app_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::string group_;
  std::vector<std::string>* rest_ = nullptr;
  OptionInfo rest_info_;
  std::map<std::string, std::string> advice_;  // by unknown subcommand
  Body body_;
};

}  // namespace muster::cli
