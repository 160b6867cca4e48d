// Everything that a user can do with jobs, independent of the user interface: the command line is
// one client, a dashboard another. Each header of this module has the functions of one task;
// README.md lists its folders.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "history/history.h"
#include "platform/registration.h"

namespace muster::jobs {

struct ServiceOptions {
  std::string home;     // MUSTER_HOME
  std::string program;  // the path of the muster binary
  // Shows a message to the user: a warning, or progress of slow work. Called from any thread.
  std::function<void(const std::string&)> notify;
  // Returns true once the user has asked to cancel slow work; null = never.
  std::function<bool()> interrupted;
};

// The history and the platforms that the functions of this module work with. Owns the history. Not
// thread-safe. Any number of processes may work on the same home.
class Service {
 public:
  // `platforms` must outlive this.
  Service(ServiceOptions options, platform::Registry& platforms)
      : options_(std::move(options)), platforms_(platforms) {}

  const std::string& home() const { return options_.home; }
  platform::Registry& platforms() { return platforms_; }
  // Returns InvalidArgument if there is no platform of that name.
  absl::StatusOr<platform::Platform*> platform(const std::string& name) {
    return platforms_.Find(name);
  }
  // Opens the history at the first call. A damaged history is repaired, with a notice.
  absl::StatusOr<history::History*> history();
  // Returns the path of a program of Muster, beside this one or in PATH, or NotFound.
  absl::StatusOr<std::string> FindProgram(const std::string& name) const;
  // Returns the path of muster-trainer, or NotFound with advice.
  absl::StatusOr<std::string> FindTrainer() const;
  const std::function<bool()>& interrupted() const { return options_.interrupted; }
  void Notify(const std::string& text) const {
    if (options_.notify) options_.notify(text);
  }

 private:
  const ServiceOptions options_;
  platform::Registry& platforms_;
  std::unique_ptr<history::History> history_;
};

// A service with platforms of its own.
struct OwnedService {
  std::unique_ptr<platform::Registry> platforms;
  std::unique_ptr<Service> jobs;  // refers to *platforms
};

}  // namespace muster::jobs
