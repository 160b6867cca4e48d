#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/format.h"
#include "checkpoint/safetensors.h"
#include "nlohmann/json.hpp"
#include "storage/storage.h"

namespace muster::checkpoint {
namespace {

constexpr size_t kAlignment = 8;

// Returns the header's JSON without its length. Throws nlohmann::json::exception for a name that
// is not UTF-8.
absl::StatusOr<std::string> Text(absl::Span<const base::TensorSpec> specs,
                                 const Metadata& metadata) {
  std::set<absl::string_view> names = {"__metadata__"};
  std::string text = "{";
  const auto add = [&text](const std::string& name, const nlohmann::ordered_json& value) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "", nlohmann::json(name).dump(), ":",
                    value.dump());
  };
  if (!metadata.empty()) add("__metadata__", metadata);
  int64_t offset = 0;
  for (const base::TensorSpec& spec : specs) {
    if (!names.insert(spec.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the tensor name '", spec.name, "' is reserved or used twice"));
    }
    const auto bytes = CheckedBytes(spec);
    if (!bytes.has_value() || *bytes > std::numeric_limits<int64_t>::max() - offset) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", spec.name, "' has an impossible shape ", base::ToString(spec.shape)));
    }
    add(spec.name, {{"dtype", std::string(base::ToString(spec.dtype))},
                    {"shape", spec.shape},
                    {"data_offsets", {offset, offset + *bytes}}});
    offset += *bytes;
  }
  return absl::StrCat(text, "}");
}

}  // namespace

Metadata TorchMetadata() { return {{"format", "pt"}}; }

std::optional<int64_t> CheckedBytes(const base::TensorSpec& spec) {
  int64_t bytes = 1;
  for (const int64_t size : spec.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  if (__builtin_mul_overflow(bytes, base::SizeOf(spec.dtype), &bytes)) return std::nullopt;
  return bytes;
}

absl::StatusOr<std::string> WriteHeader(absl::Span<const base::TensorSpec> specs,
                                        const Metadata& metadata) {
  std::string text;
  try {
    MUSTER_ASSIGN_OR_RETURN(text, Text(specs, metadata));
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("a tensor's name, or the metadata, is not valid UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (static_cast<int64_t>(text.size()) > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(specs.size(), " tensors are too many for one file"));
  }
  std::string header;
  for (size_t length = text.size(), i = 0; i < 8; ++i, length >>= 8) {
    header.push_back(static_cast<char>(length & 0xff));
  }
  return absl::StrCat(header, text);
}

absl::Status WriteSafetensors(const std::string& location,
                              const std::vector<base::TensorSpec>& specs,
                              const std::vector<absl::Span<const std::byte>>& bytes,
                              const Metadata& metadata, storage::IfExists if_exists) {
  std::vector<size_t> order(specs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&specs](size_t a, size_t b) {
    return base::SizeOf(specs[a].dtype) > base::SizeOf(specs[b].dtype);
  });
  std::vector<base::TensorSpec> placed;
  std::vector<absl::Span<const std::byte>> pieces;
  for (const size_t i : order) {
    if (i >= bytes.size() || CheckedBytes(specs[i]) != static_cast<int64_t>(bytes[i].size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the bytes of '", specs[i].name, "' do not match its shape and dtype"));
    }
    placed.push_back(specs[i]);
    pieces.push_back(bytes[i]);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string header, WriteHeader(placed, metadata));
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(const storage::Url url, storage::ParseUrl(location));
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * files, storage.For(url));
  MUSTER_ASSIGN_OR_RETURN(const auto writer, files->OpenForWriting(url, if_exists));
  MUSTER_RETURN_IF_ERROR(writer->Append(header));
  for (const auto& piece : pieces) {
    MUSTER_RETURN_IF_ERROR(
        writer->Append({reinterpret_cast<const char*>(piece.data()), piece.size()}));
  }
  return writer->Close();
}

}  // namespace muster::checkpoint
