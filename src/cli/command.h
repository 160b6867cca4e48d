// One command of the command line, with its arguments and options. Hides the parser library, whose
// header costs ten seconds of compilation wherever it is included.
#pragma once

#include <cstdint>
#include <functional>
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

// The variables given to Argument, Option and Flag hold the defaults, receive what the user wrote,
// and must live until the body has run: the body usually shares a struct of them. Not thread-safe.
class Command {
 public:
  using Body = std::function<absl::StatusOr<int>()>;  // returns the exit code

  struct OptionInfo {
    std::string names;  // as in the help: "-f,--follow", "JOB"
    std::string description;
    std::vector<std::string> long_names;  // "follow"; empty for an argument
    std::string group;                    // its heading in the help; "" = none of its own
  };

  // The program itself.
  Command(const std::string& name, const std::string& description);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Owned by this command. A command with subcommands may be called with or without one.
  Command& AddCommand(const std::string& name, const std::string& description);
  // Not for people: in no help.
  void Hide();

  void Argument(const std::string& name, std::string* value, const std::string& description,
                Presence presence = Presence::kOptional);
  void Argument(const std::string& name, std::vector<std::string>* values,
                const std::string& description, Presence presence = Presence::kOptional);
  void Argument(const std::string& name, int* value, const std::string& description);
  void Flag(const std::string& names, bool* value, const std::string& description);
  void HiddenFlag(const std::string& names, bool* value);
  // With `choices`, exactly one of them.
  void Option(const std::string& names, std::string* value, const std::string& description,
              const std::vector<std::string>& choices = {});
  void Option(const std::string& names, int* value,
              const std::string& description);  // not negative
  void Option(const std::string& names, int64_t* value, const std::string& description);
  // May be given several times, each with one value.
  void Option(const std::string& names, std::vector<std::string>* values,
              const std::string& description);
  // Options and flags that are added from now on stand under this heading; "" = under "Options".
  void Group(const std::string& heading) { group_ = heading; }
  void Exclude(const std::string& one, const std::string& other);
  void Footer(const std::string& text);
  void Version(const std::string& version);

  void OnCall(Body body) { body_ = std::move(body); }

  // Reads the command line and runs the body of the command that was called, on the program itself
  // only. InvalidArgument when it is misused: what to do instead is in the message.
  absl::StatusOr<int> Run(int argc, char** argv);

  std::string name() const;
  std::string description() const;
  std::string Help() const;
  std::vector<const Command*> commands() const;  // but the hidden ones
  std::vector<OptionInfo> options() const;       // but the hidden ones, group by group
  const Command* Find(const std::string& name) const;

 private:
  explicit Command(CLI::App* app);
  // Puts an option under the heading that Group() has set.
  CLI::Option* Grouped(CLI::Option* option) const;
  const Command* Called() const;
  std::string Explain(const std::string& complaint, int argc, char** argv) const;

  std::unique_ptr<CLI::App> owned_;  // of the program itself
  CLI::App* app_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::string group_;
  Body body_;
};

}  // namespace muster::cli
