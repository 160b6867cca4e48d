// Parses a header event by event (SAX), so that hostile input costs no more memory than its length.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"
#include "checkpoint/format.h"
#include "checkpoint/mapped_file.h"
#include "checkpoint/safetensors.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLengthBytes = 8;
constexpr char kMetadataKey[] = "__metadata__";

struct Candidate {
  Placed placed;
  int64_t end = 0;
};

// States:   kStart -> kTop -> kTensor -> kShape | kOffsets
//                          -> kMetadata
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  std::vector<Candidate> tensors;
  Metadata metadata;
  std::string error;  // the first one; "" = none

  bool start_object(std::size_t) override {
    if (state_ == State::kStart) return Go(State::kTop);
    if (state_ != State::kTop) return Fail("unexpected object");
    if (name_ == kMetadataKey) return Go(State::kMetadata);
    tensors.push_back({.placed = {.spec = {.name = name_}}});
    fields_.clear();
    return Go(State::kTensor);
  }

  bool key(string_t& text) override {
    if (state_ == State::kTop) {
      name_ = text;
      return names_.insert(text).second || Fail("duplicate entry");
    }
    field_ = text;
    if (state_ == State::kMetadata) {
      return !metadata.contains(text) || Fail("duplicate key in the metadata");
    }
    return fields_.insert(text).second || Fail(absl::StrCat("'", text, "' twice"));
  }

  bool end_object() override {
    if (state_ == State::kTop) return Go(State::kEnd);
    if (state_ == State::kTensor && !FinishTensor()) return false;
    return Go(State::kTop);
  }

  bool start_array(std::size_t) override {
    numbers_.clear();
    if (state_ == State::kTensor && field_ == "shape") return Go(State::kShape);
    if (state_ == State::kTensor && field_ == "data_offsets") return Go(State::kOffsets);
    return Fail("unexpected list");
  }

  bool end_array() override {
    if (state_ == State::kShape) tensors.back().placed.spec.shape = numbers_;
    if (state_ == State::kOffsets) {
      if (numbers_.size() != 2) return Fail("data_offsets must be two numbers");
      tensors.back().placed.begin = numbers_[0];
      tensors.back().end = numbers_[1];
    }
    return Go(State::kTensor);
  }

  bool string(string_t& text) override {
    if (state_ == State::kMetadata) {
      metadata[field_] = text;
      return true;
    }
    if (state_ != State::kTensor || field_ != "dtype") return Fail("unexpected text");
    const auto dtype = base::ParseDType(text);
    if (!dtype.has_value()) return Fail(absl::StrCat("unknown dtype '", text, "'"));
    tensors.back().placed.spec.dtype = *dtype;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kShape && state_ != State::kOffsets) {
      return Fail("unexpected number");
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail(absl::StrCat(value, " is too large"));
    }
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(number_integer_t) override { return Fail("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Fail("a number that is not whole, or too large");
  }
  bool null() override { return Fail("unexpected null"); }
  bool boolean(bool) override { return Fail("unexpected boolean"); }
  bool binary(binary_t&) override { return Fail("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    if (error.empty()) error = absl::StrCat("the header is not valid JSON at byte ", position);
    return false;
  }

 private:
  enum class State { kStart, kTop, kTensor, kShape, kOffsets, kMetadata, kEnd };

  bool Go(State state) {
    state_ = state;
    return true;
  }

  bool Fail(absl::string_view what) {
    error = state_ == State::kStart ? "the header is not a JSON object"
                                    : absl::StrCat("the header's entry '", name_, "': ", what);
    return false;
  }

  bool FinishTensor() {
    if (fields_ != std::set<std::string>{"data_offsets", "dtype", "shape"}) {
      return Fail("must have dtype, shape and data_offsets, and nothing else");
    }
    const Candidate& tensor = tensors.back();
    const auto bytes = CheckedBytes(tensor.placed.spec);
    if (!bytes.has_value()) return Fail("its shape is too large");
    if (tensor.end < tensor.placed.begin || tensor.end - tensor.placed.begin != *bytes) {
      return Fail(absl::StrCat("data_offsets [", tensor.placed.begin, ", ", tensor.end,
                               "] do not span the ", *bytes, " bytes of its shape and dtype"));
    }
    return true;
  }

  State state_ = State::kStart;
  std::string name_;   // of the entry
  std::string field_;  // within it
  std::set<std::string> names_;
  std::set<std::string> fields_;
  std::vector<int64_t> numbers_;
};

// Checks that every byte after the header belongs to exactly one tensor. Sorts `tensors` by offset.
absl::Status CheckOffsets(std::vector<Candidate>& tensors, int64_t data_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.placed.begin, a.end) < std::pair(b.placed.begin, b.end);
  });
  int64_t offset = 0;
  for (const Candidate& tensor : tensors) {
    if (tensor.placed.begin != offset) {
      return absl::DataLossError(absl::StrCat(
          "the bytes of '", tensor.placed.spec.name, "' begin at ", tensor.placed.begin,
          tensor.placed.begin < offset ? " and overlap a tensor that ends at "
                                       : " and leave a gap after ",
          offset));
    }
    offset = tensor.end;
  }
  if (offset != data_bytes) {
    return absl::DataLossError(
        absl::StrCat("the tensors take ", offset, " bytes, but ", data_bytes,
                     " follow the header; the file is truncated or damaged"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseHeader(absl::string_view beginning, int64_t file_bytes) {
  if (file_bytes < kLengthBytes || beginning.size() < kLengthBytes) {
    return absl::DataLossError("is shorter than the 8 length bytes of a safetensors file");
  }
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) {
    length = length << 8 | static_cast<unsigned char>(beginning[static_cast<size_t>(i)]);
  }
  if (length > static_cast<uint64_t>(std::min(kMaxHeaderBytes, file_bytes - kLengthBytes)) ||
      length > beginning.size() - kLengthBytes) {
    return absl::DataLossError(absl::StrCat("its header would be ", length,
                                            " bytes long: not a safetensors file, or truncated"));
  }
  const absl::string_view text = beginning.substr(kLengthBytes, length);
  HeaderReader reader;
  if (text.empty() || text[0] != '{') {
    return absl::DataLossError("its header is not a JSON object: not a safetensors file");
  }
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) {
    return absl::DataLossError(reader.error);
  }
  SafetensorsHeader header;
  header.data_start = kLengthBytes + static_cast<int64_t>(length);
  MUSTER_RETURN_IF_ERROR(CheckOffsets(reader.tensors, file_bytes - header.data_start));
  header.metadata = std::move(reader.metadata);
  header.tensors.reserve(reader.tensors.size());
  for (Candidate& tensor : reader.tensors) header.tensors.push_back(std::move(tensor.placed));
  return header;
}

absl::StatusOr<SafetensorsHeader> ReadHeader(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  auto header = ParseHeader(
      absl::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()),
      static_cast<int64_t>(file.bytes().size()));
  if (!header.ok()) return base::Annotate(header.status(), path);
  return header;
}

}  // namespace muster::checkpoint
