// Registration of platforms: each platform folder has a `Registration()`, and apps/muster
// passes the list of them to the command line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "job/target.h"
#include "platform/platform.h"
#include "supervise/runner.h"

namespace muster::platform {

// The services that the program provides to its platforms.
struct Environment {
  std::string program;  // the path of the muster binary
  std::string home;     // MUSTER_HOME
  std::string version;
  // Shows a message to the user. Called from any thread.
  std::function<void(const std::string&)> notify;
  // Returns true once the user has asked to cancel slow work. Called from any thread.
  std::function<bool()> interrupted;
};

// Receives the options that a platform adds to a command. The variables receive the parsed values.
class OptionSink {
 public:
  virtual ~OptionSink() = default;
  virtual void Option(const std::string& names, std::string* value,
                      const std::string& description) = 0;
  virtual void Option(const std::string& names, int* value, const std::string& description) = 0;
  virtual void Flag(const std::string& names, bool* value, const std::string& description) = 0;
};

// The commands that take options of a platform.
enum class OptionUse {
  kFind,      // show, logs, stop …: where to look for a job
  kEnv,       // env: also which machines, for a job that is not running
  kRun,       // run: also what the new job needs there
  kEvaluate,  // evaluate: also the model and the machine
  kDoctor,    // doctor: which machines to check
};

// The options of one platform in one command.
class Options {
 public:
  virtual ~Options() = default;
  virtual void AddTo(OptionUse use, OptionSink& sink) = 0;
  // Returns the name of the first option that the user gave, or "".
  virtual std::string FirstGiven() const = 0;
  virtual job::Target ToTarget() const = 0;
  // Returns ToTarget() with Muster's images in `repository`, or InvalidArgument if other options
  // name an image. Unimplemented: the platform runs no images.
  virtual absl::StatusOr<job::Target> InRepository(const std::string& repository) const {
    return absl::UnimplementedError(repository);
  }
  // Returns the id for the new job; "" = Muster chooses one.
  virtual std::string job_id() const { return ""; }
  // Returns the id of the job that the new one continues, or "".
  virtual std::string resumes() const { return ""; }
  // Returns the folder of the training run to evaluate, or "".
  virtual std::string train_folder() const { return ""; }
};

// A hidden command that a platform runs on its own machines.
struct EntryPoint {
  std::string name;
  std::vector<std::string> arguments;  // their names
  // Returns only on failure.
  std::function<absl::Status(const std::vector<std::string>& arguments)> run;
};

struct Registration {
  Traits traits;
  // Creates the platform with the traits above.
  std::function<std::unique_ptr<Platform>(const Traits&, const Environment&)> make;
  std::function<std::unique_ptr<Options>()> make_options;  // null = it has no options
  supervise::RunnerFactory make_runner;  // null = its jobs have no supervisor on this machine
  std::vector<EntryPoint> entry_points;
};

// The platforms of a program, the default one first. Creates each at its first use and owns it. Not
// thread-safe.
class Registry {
 public:
  Registry(std::vector<Registration> registrations, Environment environment)
      : registrations_(std::move(registrations)),
        environment_(std::move(environment)),
        platforms_(registrations_.size()) {}

  const std::vector<Registration>& registrations() const { return registrations_; }
  std::vector<std::string> names() const;
  // Returns InvalidArgument, listing the known names, for an unknown name.
  absl::StatusOr<const Registration*> RegistrationOf(const std::string& name) const;
  absl::StatusOr<Platform*> Find(const std::string& name);

 private:
  const std::vector<Registration> registrations_;
  const Environment environment_;
  std::vector<std::unique_ptr<Platform>> platforms_;  // in the order of registrations_
};

}  // namespace muster::platform
