#include "platform/registration.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"

namespace muster::platform {

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const Registration& one : registrations_) names.push_back(one.traits.name);
  return names;
}

absl::StatusOr<const Registration*> Registry::RegistrationOf(const std::string& name) const {
  const auto found =
      std::find_if(registrations_.begin(), registrations_.end(),
                   [&name](const Registration& one) { return one.traits.name == name; });
  if (found != registrations_.end()) return &*found;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown platform '", name, "'; this version runs on: ", absl::StrJoin(names(), ", "),
      base::DidYouMean(name, names())));
}

absl::StatusOr<Platform*> Registry::Find(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const Registration* found, RegistrationOf(name));
  std::unique_ptr<Platform>& platform = platforms_[found - registrations_.data()];
  if (platform == nullptr) platform = found->make(found->traits, environment_);
  return platform.get();
}

}  // namespace muster::platform
