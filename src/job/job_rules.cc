#include "job/job_rules.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/storage_schemes.h"
#include "base/text/suggest.h"
#include "base/text/units.h"
#include "cluster/address.h"
#include "job/format/parse.h"

namespace muster::job {
namespace {

constexpr size_t kMaxLabelLength = 63;  // of a DNS label

bool IsNameCharacter(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
}

// Returns the standard role that `name` misspells by case or plural, else "". Other names are roles
// defined by the user.
std::string SuggestRole(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const char* role : {"chief", "master", "worker", "ps", "evaluator"}) {
    if (lower == absl::StrCat(role, "s") || (lower == role && name != role)) return role;
  }
  return "";
}

void CheckLeaders(const JobSpec& spec, const RolePlaces& places, codec::Diagnostics& diagnostics) {
  const RoleSpec* leader = nullptr;
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    const RoleSpec& role = spec.roles[i];
    if (!IsChiefRole(role.name)) continue;
    if (leader != nullptr) {
      diagnostics.Add(places.each[i], absl::StrCat("roles '", leader->name, "' and '", role.name,
                                                   "' both lead the job; keep one of them"));
    }
    leader = &role;
  }
}

void CheckCounts(const JobSpec& spec, const RolePlaces& places, codec::Diagnostics& diagnostics) {
  int64_t total = 0;
  int64_t trains = 0;
  const bool only_serves = spec.format == JobFormat::kRenderedCluster;
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    const RoleSpec& role = spec.roles[i];
    total += role.replicas;
    if (!IsServiceRole(role.name)) trains += role.replicas;
    if (!only_serves && role.replicas > 1 && (IsChiefRole(role.name) || role.name == "evaluator")) {
      diagnostics.Add(places.each[i], absl::StrCat("role '", role.name, "' has ", role.replicas,
                                                   " replicas; expected 1 at most"));
    }
  }
  if (total > kMaxTasks) {
    diagnostics.Add(places.all, absl::StrCat("the job has ", total, " tasks; expected ", kMaxTasks,
                                             " at most"));
  } else if (only_serves && total == 0) {
    diagnostics.Add(places.all, "the cluster has no task; expected 'num_tasks' of 1 or more");
  } else if (trains == 0 && !only_serves &&
             spec.format != JobFormat::kTfJobV1) {  // Kubeflow allows servers only
    diagnostics.Add(places.all,
                    "the job has no task that trains: ps and evaluator only serve others; add a "
                    "'chief' or a 'worker'");
  }
}

// Each replica stores a copy of the template in its pod, so the total size counts.
void CheckTemplates(const JobSpec& spec, const RolePlaces& places,
                    codec::Diagnostics& diagnostics) {
  int64_t total = 0;
  for (const RoleSpec& role : spec.roles) {
    if (role.pod.is_null()) continue;
    const std::string text =
        role.pod.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    total += static_cast<int64_t>(text.size()) * role.replicas;
  }
  if (total <= kMaxTemplateBytes) return;
  diagnostics.Add(
      places.all,
      absl::StrCat("the pod templates of all replicas together take ", base::FormatBytes(total),
                   "; expected ", base::FormatBytes(kMaxTemplateBytes),
                   " at most: use fewer replicas, or move large data into the image, "
                   "a volume or a config map"));
}

void CheckAddresses(const JobSpec& spec, const RolePlaces& places,
                    codec::Diagnostics& diagnostics) {
  std::set<std::string> seen;
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    const RoleSpec& role = spec.roles[i];
    const auto report = [&](const auto&... parts) {
      diagnostics.Add(places.each[i], absl::StrCat("role '", role.name, "' ", parts...));
    };
    if (role.port && *role.port + role.replicas - 1 > kLastPort) {
      report("needs ports ", *role.port, " to ", *role.port + role.replicas - 1,
             "; the last port is ", kLastPort);
    }
    if (role.addresses.empty()) continue;
    if (role.port) report("has both 'port' and 'addresses'; keep one of them");
    if (static_cast<int>(role.addresses.size()) != role.replicas) {
      report("has ", role.addresses.size(), " addresses for ", role.replicas,
             " replicas; expected one each");
    }
    for (const std::string& address : role.addresses) {
      if (!cluster::ParseAddress(address)) {
        report("has the address ", codec::Quoted(address), "; expected host:port");
      } else if (!seen.insert(address).second) {
        report("has the address ", codec::Quoted(address), ", which another task also has");
      }
    }
  }
}

// Returns whether `text` has the form of a URL's scheme.
bool IsScheme(absl::string_view text) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '.' || c == '-';
  };
  return !text.empty() && absl::ascii_isalpha(text.front()) &&
         std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace

bool IsLabel(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxLabelLength && name.front() != '-' &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), IsNameCharacter);
}

void CheckJobName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics) {
  if (IsLabel(name)) return;
  diagnostics.Add(mark, absl::StrCat("the job's name ", codec::Quoted(name),
                                     " is not valid; expected ", kNameRule));
}

void CheckRoleName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics) {
  const std::string meant = SuggestRole(name);
  if (!meant.empty()) {
    diagnostics.Add(
        mark, absl::StrCat("unknown role ", codec::Quoted(name), " (did you mean '", meant, "'?)"));
  } else if (!IsLabel(name) || !absl::ascii_islower(name.front())) {
    diagnostics.Add(mark, absl::StrCat("the role's name ", codec::Quoted(name),
                                       " is not valid; expected a letter first, then ", kNameRule));
  }
}

void CheckEnvName(absl::string_view name, codec::Mark mark, codec::Diagnostics& diagnostics) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  if (!name.empty() && !absl::ascii_isdigit(name.front()) &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return;
  }
  diagnostics.Add(mark,
                  absl::StrCat("the variable's name ", codec::Quoted(name),
                               " is not valid; expected letters, digits and '_', no digit first"));
}

std::string ResolveStorage(absl::string_view path, absl::string_view working_dir,
                           absl::string_view what, codec::Mark mark,
                           codec::Diagnostics& diagnostics, Schemes schemes) {
  static const auto& kSchemes =
      *new std::vector<std::string>(base::kStorageSchemes.begin(), base::kStorageSchemes.end());
  if (path.empty()) {
    diagnostics.Add(mark, absl::StrCat(what, " is empty; expected a path or a URL"));
    return "";
  }
  const size_t separator = path.find("://");
  if (separator == absl::string_view::npos) return base::AbsolutePath(path, working_dir);
  const std::string scheme(path.substr(0, separator));
  const bool supported = !base::StorageSchemeOf(scheme, path.substr(separator + 3)).empty();
  if (scheme == "dfs" && !supported && schemes == Schemes::kSupported) {
    diagnostics.Add(mark, absl::StrCat(what, " is ", codec::Quoted(path), "; ", base::kDfsRule));
    return "";
  }
  if (!supported && (schemes == Schemes::kSupported || !IsScheme(scheme))) {
    diagnostics.Add(
        mark, absl::StrCat(what, " has the unknown scheme ", codec::Quoted(scheme),
                           "; expected a path or one of: ", absl::StrJoin(kSchemes, "://, "), "://",
                           base::DidYouMean(scheme, kSchemes)));
    return "";
  }
  if (path.size() == separator + 3) {
    diagnostics.Add(mark, absl::StrCat(what, " is incomplete: ", codec::Quoted(path),
                                       "; expected a URL such as gs://bucket/path"));
    return "";
  }
  if (scheme != "file") return std::string(path);
  if (absl::StartsWith(path, "file://~")) {
    diagnostics.Add(
        mark, absl::StrCat(what, " is ", codec::Quoted(path),
                           ", in which '~' is not expanded; write ", path.substr(separator + 3)));
    return "";
  }
  return base::AbsolutePath(path.substr(separator + 3), working_dir);
}

void CheckRoles(const JobSpec& spec, const RolePlaces& places, codec::Diagnostics& diagnostics) {
  // The tasks of a rendered cluster are servers, whatever they are called.
  if (spec.format != JobFormat::kRenderedCluster) CheckLeaders(spec, places, diagnostics);
  CheckCounts(spec, places, diagnostics);
  CheckTemplates(spec, places, diagnostics);
  CheckAddresses(spec, places, diagnostics);
}

}  // namespace muster::job
