#include "cli/job/target_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "platform/images.h"

namespace muster::cli {
namespace {

// Passes the options of a platform on to a command.
class CommandSink final : public platform::OptionSink {
 public:
  CommandSink(Command& command, std::vector<std::string> taken,
              std::map<std::string, std::string*>& texts)
      : command_(command), taken_(std::move(taken)), texts_(texts) {}

  void Option(const std::string& names, std::string* value,
              const std::string& description) override {
    const std::vector<std::string> free = Free(names);
    command_.Option(absl::StrJoin(free, ","), value, description);
    texts_[free.back()] = value;
  }
  void Option(const std::string& names, int* value, const std::string& description) override {
    command_.Option(absl::StrJoin(Free(names), ","), value, description);
  }
  void Flag(const std::string& names, bool* value, const std::string& description) override {
    command_.Flag(absl::StrJoin(Free(names), ","), value, description);
  }

 private:
  // Returns the names that the command does not use itself, the long one last.
  std::vector<std::string> Free(const std::string& names) const {
    std::vector<std::string> free = absl::StrSplit(names, ',');
    std::erase_if(free, [this](const std::string& name) {
      return std::find(taken_.begin(), taken_.end(), name) != taken_.end();
    });
    return free;
  }

  Command& command_;
  const std::vector<std::string> taken_;
  std::map<std::string, std::string*>& texts_;
};

}  // namespace

void TargetOptions::AddTo(Command& command, Context& context, platform::OptionUse use,
                          const std::vector<std::string>& taken) {
  const std::vector<std::string> names = context.platforms().names();
  command.Option("--on", &platform, absl::StrCat("Platform: ", absl::StrJoin(names, ", ")));
  if (use == platform::OptionUse::kRun) {
    command.Option("--image-repository", &image_repository,
                   "A repository for Muster's own images, such as registry.example.com/ml: those "
                   "that the job needs are pushed, unless they are there, and used");
  }
  CommandSink sink(command, taken, texts_);
  for (const platform::Registration& one : context.platforms().registrations()) {
    command.Group(absl::StrCat("On ", one.traits.title, " (--on ", one.traits.name, ")"));
    AddOptionsOf(one, use, sink);
  }
  command.Group("");
}

void TargetOptions::AddWithoutPlatformTo(Command& command, Context& context,
                                         platform::OptionUse use) {
  CommandSink sink(command, {}, texts_);
  for (const platform::Registration& one : context.platforms().registrations()) {
    AddOptionsOf(one, use, sink);
  }
}

void TargetOptions::AddOptionsOf(const platform::Registration& registration,
                                 platform::OptionUse use, platform::OptionSink& sink) {
  platforms_.push_back(
      {registration.traits, registration.make_options ? registration.make_options() : nullptr});
  if (platforms_.back().options != nullptr) platforms_.back().options->AddTo(use, sink);
}

const platform::Options* TargetOptions::Of(const std::string& name) const {
  const auto found =
      std::find_if(platforms_.begin(), platforms_.end(),
                   [&name](const OfPlatform& one) { return one.traits.name == name; });
  return found == platforms_.end() ? nullptr : found->options.get();
}

std::pair<std::string, std::string> TargetOptions::FirstGiven() const {
  for (const OfPlatform& one : platforms_) {
    const std::string given = one.options == nullptr ? "" : one.options->FirstGiven();
    if (!given.empty()) return {given, one.traits.name};
  }
  return {};
}

absl::Status TargetOptions::CheckAllFor(const std::string& name) const {
  for (const OfPlatform& one : platforms_) {
    if (one.options == nullptr || one.traits.name == name) continue;
    const std::string given = one.options->FirstGiven();
    if (given.empty()) continue;
    const bool is_default = name.empty() || name == platforms_.front().traits.name;
    return absl::InvalidArgumentError(absl::StrCat(
        given, " is for jobs on ", one.traits.title,
        is_default ? absl::StrCat(": add --on ", one.traits.name)
                   : absl::StrCat(" (--on ", one.traits.name, "), not for --on ", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<job::Target> TargetOptions::ToTarget() const {
  const std::string name = platform.empty() ? platforms_.front().traits.name : platform;
  MUSTER_RETURN_IF_ERROR(CheckAllFor(name));
  const platform::Options* options = Of(name);
  if (!image_repository.empty()) return InRepository(name);
  return options == nullptr ? job::Target(job::LocalTarget()) : options->ToTarget();
}

absl::StatusOr<job::Target> TargetOptions::InRepository(const std::string& name) const {
  MUSTER_RETURN_IF_ERROR(platform::CheckRepository(image_repository));
  std::vector<std::string> with_images;
  for (const OfPlatform& one : platforms_) {
    if (one.options == nullptr) continue;
    auto target = one.options->InRepository(image_repository);
    if (absl::IsUnimplemented(target.status())) continue;
    if (one.traits.name == name) return target;
    with_images.push_back(absl::StrCat("--on ", one.traits.name));
  }
  return absl::InvalidArgumentError(absl::StrCat("--image-repository is for jobs that run from ",
                                                 "images: add ",
                                                 absl::StrJoin(with_images, " or ")));
}

absl::StatusOr<jobs::Selection> TargetOptions::ToSelection() const {
  if (!platform.empty()) {
    MUSTER_ASSIGN_OR_RETURN(job::Target target, ToTarget());
    return jobs::Selection{.platform = platform, .target = std::move(target)};
  }
  const auto [option, option_platform] = FirstGiven();
  if (option.empty()) return jobs::Selection{};
  MUSTER_RETURN_IF_ERROR(CheckAllFor(option_platform));
  return jobs::Selection{.target = Of(option_platform)->ToTarget(),
                         .option = option,
                         .option_platform = option_platform};
}

absl::StatusOr<jobs::Selection> TargetOptions::ToListSelection() const {
  if (platform.empty()) MUSTER_RETURN_IF_ERROR(CheckAllFor(""));
  return ToSelection();
}

}  // namespace muster::cli
