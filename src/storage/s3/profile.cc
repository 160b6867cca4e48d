#include "storage/s3/profile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::storage {
namespace {

constexpr int64_t kMaxProfileBytes = 1 << 20;

absl::StatusOr<Ini> ReadIni(const base::Variables& variables, const std::string& variable,
                            const std::string& name) {
  std::string path = variables(variable);
  if (path.empty()) {
    const std::string home = variables("HOME");
    if (home.empty()) return Ini{};
    path = base::JoinPath(home, absl::StrCat(".aws/", name));
  }
  const auto text = base::ReadFile(path, kMaxProfileBytes);
  if (absl::IsNotFound(text.status())) return Ini{};
  MUSTER_RETURN_IF_ERROR(text.status());
  return ParseIni(*text);
}

}  // namespace

Ini ParseIni(absl::string_view text) {
  Ini ini;
  std::string section;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool indented = !line.empty() && absl::ascii_isspace(static_cast<unsigned char>(line[0]));
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || indented || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      section = std::string(absl::StripAsciiWhitespace(line.substr(1, line.find(']') - 1)));
      ini[section];
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos || section.empty()) continue;
    absl::string_view value = line.substr(equals + 1);
    for (const char* comment : {" #", " ;"}) value = value.substr(0, value.find(comment));
    ini[section][absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, equals)))] =
        std::string(absl::StripAsciiWhitespace(value));
  }
  return ini;
}

std::string Profile::Get(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

absl::StatusOr<Profile> ReadProfile(const base::Variables& variables) {
  std::string chosen = variables("AWS_PROFILE");
  if (chosen.empty()) chosen = variables("AWS_DEFAULT_PROFILE");
  Profile profile{.name = chosen.empty() ? "default" : chosen};
  MUSTER_ASSIGN_OR_RETURN(Ini credentials,
                          ReadIni(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials"));
  MUSTER_ASSIGN_OR_RETURN(Ini config, ReadIni(variables, "AWS_CONFIG_FILE", "config"));
  bool found = false;
  if (const auto at = credentials.find(profile.name); at != credentials.end()) {
    profile.values = std::move(at->second);
    found = true;
  }
  for (const std::string& section : {absl::StrCat("profile ", profile.name), profile.name}) {
    const auto at = config.find(section);
    if (at == config.end()) continue;
    profile.values.merge(at->second);
    found = true;
  }
  if (!found && !chosen.empty()) {
    return absl::NotFoundError(absl::StrCat("the profile '", chosen,
                                            "' that AWS_PROFILE names is neither in ",
                                            "~/.aws/credentials nor in ~/.aws/config"));
  }
  return profile;
}

}  // namespace muster::storage
