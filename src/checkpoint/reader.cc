#include "checkpoint/reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"
#include "checkpoint/format.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/verify.h"

namespace muster::checkpoint {
namespace {

// A listed file that is missing is damage: NotFound would mean that there is no checkpoint.
absl::Status Damaged(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::DataLossError(status.message()) : status;
}

// Returns the files of a kind in order. Returns DataLoss if only some of them are listed.
absl::StatusOr<std::vector<std::string>> ShardsOf(const Manifest& manifest,
                                                  absl::string_view kind) {
  std::map<int, std::string> found;
  int count = 0;
  for (const ManifestFile& file : manifest.files) {
    const auto shard = ParseShardFile(file.name);
    if (!shard.has_value() || shard->kind != kind) continue;
    if (count != 0 && shard->count != count) {
      return absl::DataLossError(
          absl::StrCat("its manifest mixes ", kind, " files of ", count, " and of ", shard->count));
    }
    count = shard->count;
    found[shard->number] = file.name;
  }
  if (static_cast<int>(found.size()) != count ||
      (count > 0 && (found.begin()->first != 1 || found.rbegin()->first != count))) {
    return absl::DataLossError(
        absl::StrCat("its manifest lists ", found.size(), " of ", count, " ", kind, " files"));
  }
  std::vector<std::string> names;
  names.reserve(found.size());
  for (auto& [number, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& folder, bool verify) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  MUSTER_ASSIGN_OR_RETURN(checkpoint.manifest_, ReadManifest(folder));
  // Before the files are mapped: an access beyond the end of a truncated file raises SIGBUS.
  MUSTER_RETURN_IF_ERROR(CheckSizes(folder, checkpoint.manifest_));
  if (verify) {
    const auto damaged = VerifyFiles(folder, checkpoint.manifest_, [](int64_t) {});
    if (!damaged.empty()) return damaged.front();
  }
  MUSTER_RETURN_IF_ERROR(checkpoint.MapShards(kModelKind, checkpoint.weights_));
  MUSTER_RETURN_IF_ERROR(checkpoint.MapShards(kOptimizerKind, checkpoint.slots_));
  MUSTER_RETURN_IF_ERROR(checkpoint.CheckIndex());
  auto state = ReadJsonObject(folder, kStateFile);
  if (!state.ok()) return Damaged(state.status());
  checkpoint.state_ = *std::move(state);
  return checkpoint;
}

absl::Status Checkpoint::MapShards(absl::string_view kind, Tensors& tensors) {
  const auto names = ShardsOf(manifest_, kind);
  if (!names.ok()) return base::Annotate(names.status(), folder_);
  for (const std::string& name : *names) {
    MUSTER_RETURN_IF_ERROR(base::Annotate(MapShard(name, tensors), base::JoinPath(folder_, name)));
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::MapShard(const std::string& name, Tensors& tensors) {
  auto file = MappedFile::Open(base::JoinPath(folder_, name));
  if (!file.ok()) return Damaged(file.status());
  const absl::Span<const std::byte> bytes = file->bytes();
  files_.push_back(*std::move(file));
  MUSTER_ASSIGN_OR_RETURN(
      SafetensorsHeader header,
      ParseHeader(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                  static_cast<int64_t>(bytes.size())));
  for (Placed& tensor : header.tensors) {
    const auto offset = static_cast<size_t>(header.data_start + tensor.begin);
    const auto size = static_cast<size_t>(tensor.spec.bytes());
    const Stored stored{.bytes = bytes.subspan(offset, size), .file = name};
    if (!tensors.stored.try_emplace(tensor.spec.name, stored).second) {
      return absl::DataLossError(
          absl::StrCat("'", tensor.spec.name, "' is also in another file of the checkpoint"));
    }
    tensors.specs.push_back(std::move(tensor.spec));
  }
  return absl::OkStatus();
}

// Other tools read weights through the index, so it must agree with the files.
absl::Status Checkpoint::CheckIndex() const {
  const std::string path = base::JoinPath(folder_, kIndexFile);
  const auto listed = std::any_of(manifest_.files.begin(), manifest_.files.end(),
                                  [](const ManifestFile& file) { return file.name == kIndexFile; });
  if (!listed) return absl::DataLossError(absl::StrCat(path, ": is not in the manifest"));
  const auto index = ReadJsonObject(folder_, kIndexFile);
  if (!index.ok()) return Damaged(index.status());
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object() || map->size() != weights_.specs.size()) {
    return absl::DataLossError(
        absl::StrCat(path, ": its weight_map does not match the weights in the files"));
  }
  for (const auto& [name, file] : map->items()) {
    const auto found = weights_.stored.find(name);
    if (found == weights_.stored.end() || !file.is_string() ||
        file.get_ref<const std::string&>() != found->second.file) {
      return absl::DataLossError(
          absl::StrCat(path, ": its weight_map has a wrong entry for '", name, "'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const std::byte>> Checkpoint::Weight(absl::string_view name) const {
  const auto found = weights_.stored.find(name);
  if (found != weights_.stored.end()) return found->second.bytes;
  return absl::NotFoundError(absl::StrCat(folder_, ": has no weight '", name, "'"));
}

absl::StatusOr<absl::Span<const std::byte>> Checkpoint::Slot(absl::string_view name) const {
  const auto found = slots_.stored.find(name);
  if (found != slots_.stored.end()) return found->second.bytes;
  return absl::NotFoundError(absl::StrCat(folder_, ": has no optimizer slot '", name, "'"));
}

std::string Checkpoint::WeightFile(absl::string_view name) const {
  const auto found = weights_.stored.find(name);
  return found == weights_.stored.end() ? "" : found->second.file;
}

std::string Checkpoint::SlotFile(absl::string_view name) const {
  const auto found = slots_.stored.find(name);
  return found == slots_.stored.end() ? "" : found->second.file;
}

}  // namespace muster::checkpoint
