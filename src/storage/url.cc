#include "storage/url.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/storage_schemes.h"
#include "base/text/suggest.h"
#include "base/text/terminal_text.h"

namespace muster::storage {
namespace {

constexpr absl::string_view kSeparator = "://";

// Those of kStorageSchemes, and memory:// for tests.
const std::vector<std::string>& Schemes() {
  static const auto& kSchemes = []() -> const std::vector<std::string>& {
    auto* schemes =
        new std::vector<std::string>(base::kStorageSchemes.begin(), base::kStorageSchemes.end());
    schemes->push_back("memory");
    return *schemes;
  }();
  return kSchemes;
}

bool IsBucket(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  });
}

// Returns whether `text` consists of the characters of a host name or address with an optional
// port. Nothing here needs an escape.
bool IsHost(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view(".-_:[]").find(c) != absl::string_view::npos;
  });
}

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", base::Printable(text), "': ", why));
}

absl::StatusOr<Url> ParsePath(absl::string_view text, absl::string_view path) {
  if (path.empty()) return Wrong(text, "names no file");
  return LocalUrl(std::string(path));
}

absl::StatusOr<Url> ParsePlace(absl::string_view text, absl::string_view scheme,
                               absl::string_view rest) {
  const size_t slash = std::min(rest.find('/'), rest.size());
  Url url{.scheme = std::string(scheme), .authority = std::string(rest.substr(0, slash))};
  rest.remove_prefix(slash);
  if (absl::StrContains(url.authority, '@')) {
    // The URL is not quoted in the message: the text before an @ may be a password.
    return absl::InvalidArgumentError(
        absl::StrCat("a ", scheme, " URL must not contain credentials (it has an @); see ",
                     "docs/storage.md for where they are read from"));
  }
  if (scheme == "hdfs") {
    if (!url.authority.empty() && !IsHost(url.authority)) {
      return Wrong(text, "expected hdfs://host:port/path");
    }
    if (url.authority.empty() && rest.empty()) {
      return Wrong(text, "expected hdfs://host:port/path, or hdfs:///path");
    }
    url.name = rest.empty() ? "/" : std::string(rest);
    return url;
  }
  if (!IsBucket(url.authority)) {
    return Wrong(text,
                 absl::StrCat("expected ", scheme, "://bucket/name; a bucket name consists of ",
                              "letters, digits, dots and hyphens"));
  }
  url.name = std::string(rest.substr(rest.empty() ? 0 : 1));
  return url;
}

}  // namespace

std::string Url::ToString() const {
  if (scheme == "file") {
    // Without file://, ParseUrl() would take such a path for a URL.
    const bool ambiguous = absl::StrContains(name, kSeparator);
    return ambiguous ? absl::StrCat("file://", name) : name;
  }
  if (scheme == "memory") return absl::StrCat("memory://", name);
  return absl::StrCat(scheme, kSeparator, authority, scheme == "hdfs" ? "" : "/", name);
}

Url Url::Child(absl::string_view child) const {
  return WithName(absl::StrCat(AsFolder().name, child));
}

absl::string_view Url::Basename() const {
  const absl::string_view all = name;
  const size_t slash = all.rfind('/');
  return slash == absl::string_view::npos ? all : all.substr(slash + 1);
}

bool IsRemote(absl::string_view path) {
  return absl::StrContains(path, kSeparator) && !absl::StartsWith(path, "file://");
}

bool IsSupported(absl::string_view path) {
  if (!IsRemote(path)) return true;
  const size_t separator = path.find(kSeparator);
  const std::string scheme = absl::AsciiStrToLower(path.substr(0, separator));
  return !base::StorageSchemeOf(scheme, path.substr(separator + kSeparator.size())).empty();
}

std::string LocalPath(absl::string_view path) {
  return std::string(absl::StripPrefix(path, "file://"));
}

bool StaysBelow(absl::string_view name) {
  if (absl::StartsWith(name, "/")) return false;
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "." || part == "..") return false;
  }
  return true;
}

absl::StatusOr<Url> ParseUrl(absl::string_view text) {
  if (text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError("a URL must not contain a NUL byte");
  }
  const size_t separator = text.find(kSeparator);
  if (separator == absl::string_view::npos) return ParsePath(text, text);
  const std::string scheme = absl::AsciiStrToLower(text.substr(0, separator));
  const absl::string_view rest = text.substr(separator + kSeparator.size());
  if (scheme == "file") return ParsePath(text, rest);
  if (scheme == "memory") return Url{.scheme = "memory", .name = std::string(rest)};
  if (const absl::string_view known = base::StorageSchemeOf(scheme, rest); !known.empty()) {
    return ParsePlace(text, known, rest);
  }
  if (scheme == "dfs") return Wrong(text, base::kDfsRule);
  // A slash before "://" makes it a path of this machine: "a/b://c".
  if (absl::StrContains(scheme, '/')) return ParsePath(text, text);
  return Wrong(text, absl::StrCat("unknown scheme '", base::Printable(scheme), "'",
                                  base::DidYouMean(scheme, Schemes()), "; expected one of ",
                                  absl::StrJoin(Schemes(), ", "), ", or a plain path"));
}

}  // namespace muster::storage
