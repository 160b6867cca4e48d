// The location of a file: a path of this machine, or scheme://authority/name.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::storage {

// Names are literal in every scheme: a space, %, # or ? stands for itself, and nothing is decoded.
// Two URLs are equal if they are spelled the same.
struct Url {
  std::string scheme = "file";  // one of base/storage_schemes.h, or memory
  // The bucket; host:port for hdfs, "" for the cluster of Hadoop's configuration; "" for file and
  // memory.
  std::string authority;
  // For file: a path, absolute or relative to the working directory. For hdfs: a path that begins
  // with a slash. Otherwise: a key without a leading slash, "" for the whole bucket.
  std::string name;

  std::string ToString() const;
  // Returns the URL of another name below the same authority.
  Url WithName(absl::string_view other) const { return {scheme, authority, std::string(other)}; }
  // Returns the URL of `child` below this one, with one slash between them.
  Url Child(absl::string_view child) const;
  // Returns whether the name can only be that of a folder: it is empty or ends with a slash.
  bool NamesFolder() const { return name.empty() || name.back() == '/'; }
  // Returns this URL with a slash at its end: the prefix of the names in the folder.
  Url AsFolder() const { return NamesFolder() ? *this : WithName(name + "/"); }
  // Returns the part of the name after its last slash.
  absl::string_view Basename() const;
  bool operator==(const Url&) const = default;
};

inline Url LocalUrl(std::string path) { return {.scheme = "file", .name = std::move(path)}; }

// Returns whether `path` is a URL of a storage other than the local file system.
bool IsRemote(absl::string_view path);

// Returns whether `path` is on this machine or a URL of a storage that Muster supports.
bool IsSupported(absl::string_view path);

// Returns `path` without a leading file://, if it has one.
std::string LocalPath(absl::string_view path);

// Returns whether a local path made of a folder and `name` stays below that folder: `name` has no
// component . or .. and does not begin with a slash. Object storages accept any name.
bool StaysBelow(absl::string_view name);

// Parses "/data/x", "data/x", "file:///data/x", "s3://bucket/key", "gs://bucket/key",
// "hdfs://host:port/path", "hdfs:///path" (also "dfs:///path") or "memory://name". Returns
// InvalidArgument with the reason otherwise.
absl::StatusOr<Url> ParseUrl(absl::string_view text);

}  // namespace muster::storage
