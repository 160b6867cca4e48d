// Where a file is: a path of this machine, or scheme://place/name.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::storage {

// Names are taken as they are written, in every scheme: a space, %, # or ? is itself, and nothing
// is decoded. Two URLs are equal when they are spelt the same.
struct Url {
  std::string scheme = "file";  // file, s3, gs, hdfs, memory
  std::string place;            // the bucket; host:port of hdfs; "" of file and memory
  // Of file a path, absolute or relative to the working directory; of hdfs a path that begins with
  // a slash; else a key without a slash before it, "" for all of a bucket.
  std::string name;

  std::string ToString() const;
  // The same place with another name.
  Url WithName(absl::string_view other) const { return {scheme, place, std::string(other)}; }
  // The name below this one, with one slash between them.
  Url Child(absl::string_view child) const;
  // Whether the name can only be that of a folder: all of a place, or with a slash at its end.
  bool NamesFolder() const { return name.empty() || name.back() == '/'; }
  // As a folder's: what is in it begins with this.
  Url AsFolder() const { return NamesFolder() ? *this : WithName(name + "/"); }
  // What is behind the last slash of the name.
  absl::string_view Basename() const;
  bool operator==(const Url&) const = default;
};

inline Url LocalUrl(std::string path) { return {.scheme = "file", .name = std::move(path)}; }

// Whether `path` is a URL of another storage than this machine's files.
bool IsRemote(absl::string_view path);

// Without file://, where it has that.
std::string LocalPath(absl::string_view path);

// Whether a name stays below the folder that it is put into on this machine: it has no part that
// is . or .. and does not begin with a slash. Storages take any name.
bool StaysBelow(absl::string_view name);

// "/data/x", "data/x", "file:///data/x", "s3://bucket/key", "gs://bucket/key",
// "hdfs://host:port/path", "memory://name". InvalidArgument says what is wrong with it.
absl::StatusOr<Url> ParseUrl(absl::string_view text);

}  // namespace muster::storage
