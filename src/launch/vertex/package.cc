#include "launch/vertex/package.h"

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "storage/read_ahead.h"

namespace muster::vertex {
namespace {

constexpr int64_t kLarge = 4 << 20;
constexpr char kFolder[] = "muster_packages";
constexpr char kFormat[] = "1\n";  // another one is another package

std::vector<std::vector<WorkFile>> Split(const std::vector<WorkFile>& files) {
  std::vector<std::vector<WorkFile>> parts(1);
  for (const WorkFile& file : files) {
    if (file.size < kLarge) {
      parts.front().push_back(file);
    } else {
      parts.push_back({file});
    }
  }
  return parts;
}

std::string NameOf(const std::vector<WorkFile>& files) {
  Sha256 sum;
  sum.Update(absl::string_view(kFormat));
  for (const WorkFile& file : files) {
    sum.Update(absl::StrCat(file.mode, " ", file.sha256, " ", file.path.size(), " ", file.path, " ",
                            file.link_target, "\n"));
  }
  return absl::StrCat(sum.Finish(), ".tar.gz");
}

absl::Status Upload(storage::FileSystem& there, const storage::Url& url, const std::string& root,
                    const std::vector<WorkFile>& files, storage::IfExists if_exists) {
  MUSTER_ASSIGN_OR_RETURN(const auto writer, there.OpenForWriting(url, if_exists));
  Gzip gzip([&writer](absl::string_view bytes) { return writer->Append(bytes); });
  MUSTER_RETURN_IF_ERROR(
      WriteTar(root, files, [&gzip](absl::string_view bytes) { return gzip.Write(bytes); }));
  MUSTER_RETURN_IF_ERROR(gzip.Finish());
  const absl::Status closed = writer->Close();
  // Somebody else has sent the very same.
  return absl::IsAlreadyExists(closed) ? absl::OkStatus() : closed;
}

}  // namespace

absl::StatusOr<Sent> SendPackages(storage::Storage& storage, const PackageOptions& options,
                                  const std::vector<WorkFile>& files) {
  const storage::Url folder{.scheme = "gs", .place = options.bucket, .name = kFolder};
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * there, storage.For(folder));
  const auto if_exists = options.again ? storage::IfExists::kReplace : storage::IfExists::kFail;
  Sent sent;
  for (const auto& part : Split(files)) {
    if (part.empty()) continue;
    const storage::Url url = folder.Child(NameOf(part));
    sent.packages.push_back(url.ToString());
    if (!options.again) {
      const absl::Status known = there->Stat(url).status();
      if (known.ok()) continue;
      if (!absl::IsNotFound(known)) return known;
    }
    MUSTER_RETURN_IF_ERROR(Upload(*there, url, options.root, part, if_exists));
    for (const WorkFile& file : part) sent.bytes += file.size;
  }
  return sent;
}

absl::Status Unpack(storage::Storage& storage, const std::vector<std::string>& packages,
                    const std::string& folder) {
  for (const std::string& package : packages) {
    MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(package));
    MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * there, storage.For(url));
    MUSTER_ASSIGN_OR_RETURN(const auto reader, there->OpenForReading(url));
    storage::ReadAhead ahead(*reader, url);
    Unpacker unpacker(folder);
    for (;;) {
      MUSTER_ASSIGN_OR_RETURN(const absl::string_view bytes, ahead.Next());
      if (bytes.empty()) break;
      if (const absl::Status taken = unpacker.Write(bytes); !taken.ok()) {
        return Annotate(taken, package);
      }
    }
    if (const absl::Status whole = unpacker.Finish(); !whole.ok()) return Annotate(whole, package);
  }
  return absl::OkStatus();
}

}  // namespace muster::vertex
