// Command-line options that select where a job runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/context.h"
#include "jobs/find/lookup.h"
#include "platform/registration.h"

namespace muster::cli {

// The option --on and those of every platform. Must live until the command has run.
class TargetOptions {
 public:
  // Adds --on, then the options of each platform under a heading of its own. Omits the option names
  // in `taken`, which the command uses itself.
  void AddTo(Command& command, Context& context, platform::OptionUse use,
             const std::vector<std::string>& taken = {});
  // Adds the options of each platform without --on, for a command that takes those of several.
  void AddWithoutPlatformTo(Command& command, Context& context, platform::OptionUse use);

  std::string platform;          // the value of --on; "" = not given
  std::string image_repository;  // the value of --image-repository; only for a new job

  // Returns the target on `platform`, or on the default platform if that is "". Returns
  // InvalidArgument if an option is for another platform.
  absl::StatusOr<job::Target> ToTarget() const;
  // Returns where to look for a job. Returns InvalidArgument if an option is for a platform other
  // than `platform`.
  absl::StatusOr<jobs::Selection> ToSelection() const;
  // Likewise, but also returns InvalidArgument if a platform's option is given without --on,
  // because no job implies the platform.
  absl::StatusOr<jobs::Selection> ToListSelection() const;
  // Returns the name of the first option given, with its platform's name, or "" and "".
  std::pair<std::string, std::string> FirstGiven() const;
  // Returns the options of the platform, or null if it has none.
  const platform::Options* Of(const std::string& name) const;
  // Sets an option as if the user had given it.
  // REQUIRES: a platform has added the text option `name`.
  void Set(const std::string& name, const std::string& value) { *texts_.at(name) = value; }

 private:
  struct OfPlatform {
    platform::Traits traits;
    std::unique_ptr<platform::Options> options;  // null = the platform has none
  };

  void AddOptionsOf(const platform::Registration& registration, platform::OptionUse use,
                    platform::OptionSink& sink);
  // Returns the target on platform `name` with images in `image_repository`.
  absl::StatusOr<job::Target> InRepository(const std::string& name) const;
  // Returns InvalidArgument if an option is for a platform other than `name`.
  absl::Status CheckAllFor(const std::string& name) const;

  std::vector<OfPlatform> platforms_;
  std::map<std::string, std::string*> texts_;  // by long name
};

}  // namespace muster::cli
