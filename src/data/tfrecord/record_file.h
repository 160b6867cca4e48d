// TFRecord files: records with checksums (base/bytes/record.h); the file may be compressed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/mapping.h"
#include "base/files/unique_fd.h"

namespace muster::data {

class Gunzip;

enum class Compression { kNone, kGzip, kZlib };
// Returns "none", "gzip" or "zlib".
absl::string_view ToString(Compression compression);
std::optional<Compression> ParseCompression(absl::string_view name);

// Returns the file of exactly that name, or the files that match the shell pattern, sorted. Returns
// NotFound if there are none.
absl::StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern);

// The content of one file. Maps an uncompressed file; decompresses others into memory or, if they
// are large, into an unlinked file in TMPDIR. Immutable, hence thread-safe.
class RecordFile {
 public:
  struct Options {
    std::optional<Compression> compression = std::nullopt;  // nullopt: detected from the content
    int64_t memory = int64_t{64} << 20;       // decompressed bytes; larger ones use a file
    int64_t decompressed = int64_t{1} << 38;  // larger ones are rejected
  };

  // Damage found while decompressing is not an error here; see damage().
  static absl::StatusOr<RecordFile> Open(const std::string& path) { return Open(path, Options()); }
  static absl::StatusOr<RecordFile> Open(const std::string& path, const Options& options);

  const std::string& path() const { return path_; }
  Compression compression() const { return compression_; }
  int64_t bytes_on_disk() const { return bytes_on_disk_; }
  int64_t bytes_in_memory() const { return static_cast<int64_t>(memory_.size()); }
  absl::string_view bytes() const { return in_memory_ ? absl::string_view(memory_) : map_.bytes(); }
  // Returns the error that cut bytes() short; OK if they are complete.
  const absl::Status& damage() const { return damage_; }
  // Returns "FILE, record 3 at byte 120", for messages.
  std::string Place(int64_t number, int64_t offset) const;

 private:
  explicit RecordFile(std::string path) : path_(std::move(path)) {}
  absl::Status Decompress(const Options& options);
  absl::Status Spill(Gunzip& gunzip, const Options& options);

  std::string path_;
  Compression compression_ = Compression::kNone;
  int64_t bytes_on_disk_ = 0;
  base::Mapping map_;
  bool in_memory_ = false;
  std::string memory_;
  absl::Status damage_;
};

enum class OnError { kFail, kSkip };

// One record in the bytes of its file.
struct Record {
  int64_t number = 0;  // counted from 0, including skipped records
  int64_t offset = 0;  // of its header
  absl::string_view data;
};

// Iterates over the records of a file. kSkip skips a record with damaged data; after a damaged
// length it skips the rest of the file, since the position of the next record is unknown.
// REQUIRES: the file outlives the reader.
class RecordReader {
 public:
  enum class Check { kAll, kLengths };  // kLengths: callers check data with CheckRecord()

  RecordReader(const RecordFile& file, OnError on_error, Check check = Check::kAll)
      : file_(file), on_error_(on_error), check_(check) {}

  // Returns nullopt at the end. Returns DataLoss, naming file, record and byte, now and from every
  // further call.
  absl::StatusOr<std::optional<Record>> Next();

  int64_t offset() const { return offset_; }  // position in bytes()
  int64_t damaged_records() const { return damaged_records_; }
  int64_t bytes_left_out() const { return bytes_left_out_; }
  // Returns messages about the first few skipped records.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  absl::StatusOr<std::optional<Record>> NextOrDamage();
  void RecordProblem(const absl::Status& status);

  const RecordFile& file_;
  OnError on_error_;
  Check check_;
  int64_t offset_ = 0;
  int64_t number_ = 0;
  bool ended_ = false;
  absl::Status status_;
  int64_t damaged_records_ = 0;
  int64_t bytes_left_out_ = 0;
  std::vector<std::string> problems_;
};

// Returns the data of the record at `offset`, or DataLoss if its checksum is wrong.
// REQUIRES: a RecordReader has checked the header.
absl::StatusOr<absl::string_view> CheckRecord(const RecordFile& file, int64_t offset);

}  // namespace muster::data
