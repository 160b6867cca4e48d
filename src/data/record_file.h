// TFRecord files: records with check sums (base/record.h), the whole plain or compressed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mapping.h"
#include "base/unique_fd.h"

namespace muster::data {

class Gunzip;

enum class Compression { kNone, kGzip, kZlib };
// "none", "gzip", "zlib".
absl::string_view ToString(Compression compression);
std::optional<Compression> ParseCompression(absl::string_view name);

// The files that `pattern` means, sorted: a file of exactly that name, or those that match it as a
// shell's glob. All file names of records come through here. NotFound when there are none.
absl::StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern);

// The content of one file. A plain one is mapped; a compressed one is decompressed, into memory or,
// when it is large, into a file without a name in the folder for temporary files. May be read from
// several threads at once.
class RecordFile {
 public:
  struct Options {
    std::optional<Compression> compression = std::nullopt;  // nullopt: as the content says
    int64_t memory = int64_t{64} << 20;                     // decompressed, beyond that into a file
    int64_t decompressed = int64_t{1} << 38;  // larger ones must be decompressed by the user
  };

  // Damage that is found while decompressing is kept for damage().
  static absl::StatusOr<RecordFile> Open(const std::string& path) { return Open(path, Options()); }
  static absl::StatusOr<RecordFile> Open(const std::string& path, const Options& options);

  const std::string& path() const { return path_; }
  Compression compression() const { return compression_; }
  int64_t bytes_on_disk() const { return bytes_on_disk_; }
  int64_t bytes_in_memory() const { return static_cast<int64_t>(memory_.size()); }
  absl::string_view bytes() const { return in_memory_ ? absl::string_view(memory_) : map_.bytes(); }
  // Why nothing comes after bytes() although something should.
  const absl::Status& damage() const { return damage_; }
  // "FILE, record 3 at byte 120": for messages.
  std::string Place(int64_t number, int64_t offset) const;

 private:
  explicit RecordFile(std::string path) : path_(std::move(path)) {}
  absl::Status Decompress(const Options& options);
  absl::Status Spill(Gunzip& gunzip, const Options& options);

  std::string path_;
  Compression compression_ = Compression::kNone;
  int64_t bytes_on_disk_ = 0;
  Mapping map_;
  bool in_memory_ = false;
  std::string memory_;
  absl::Status damage_;
};

enum class OnError { kFail, kSkip };

// One record in the bytes of its file.
struct Record {
  int64_t number = 0;  // counted from 0, the skipped ones too
  int64_t offset = 0;  // where its header begins
  absl::string_view data;
};

// Walks over the records of a file, which must outlive it. kSkip leaves out a record whose data is
// damaged, and the rest of the file when a length is, because nobody knows where the next begins.
class RecordReader {
 public:
  enum class Check { kAll, kLengths };  // kLengths: CheckRecord is for later

  RecordReader(const RecordFile& file, OnError on_error, Check check = Check::kAll)
      : file_(file), on_error_(on_error), check_(check) {}

  // nullopt at the end. DataLoss, again and again, that names file, record and byte.
  absl::StatusOr<std::optional<Record>> Next();

  int64_t offset() const { return offset_; }  // how far it is in bytes()
  int64_t damaged_records() const { return damaged_records_; }
  int64_t bytes_left_out() const { return bytes_left_out_; }
  // What was left out and why, the first few times.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  absl::StatusOr<std::optional<Record>> NextOrDamage();
  void Complain(const absl::Status& status);

  const RecordFile& file_;
  OnError on_error_;
  Check check_;
  int64_t offset_ = 0;
  int64_t number_ = 0;
  bool ended_ = false;
  absl::Status status_;
  int64_t damaged_records_ = 0;
  int64_t bytes_left_out_ = 0;
  std::vector<std::string> complaints_;
};

// The record whose header, checked before, is at `offset`. DataLoss when the check sum of its data
// is wrong.
absl::StatusOr<absl::string_view> CheckRecord(const RecordFile& file, int64_t offset);

}  // namespace muster::data
