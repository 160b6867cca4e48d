#include "data/tfrecord/record_file.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/record.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "data/idx/gunzip.h"

namespace muster::data {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;
constexpr size_t kMaxProblems = 10;

// An uncompressed file begins with a length and its checksum. A compressed one matches that by
// chance once in four billion.
Compression Detect(absl::string_view bytes) {
  if (bytes.size() >= base::kRecordHeaderBytes &&
      base::DataLength(bytes.substr(0, base::kRecordHeaderBytes)).ok()) {
    return Compression::kNone;
  }
  if (absl::StartsWith(bytes, "\x1f\x8b")) return Compression::kGzip;
  // The header of RFC 1950: method 8 with a window of at most 2^15 bytes, and a checksum modulo 31.
  if (bytes.size() >= 2) {
    const auto first = static_cast<unsigned char>(bytes[0]);
    const auto second = static_cast<unsigned char>(bytes[1]);
    const bool deflate = (first & 0x0f) == 8 && (first >> 4) <= 7;
    if (deflate && (first * 256 + second) % 31 == 0) return Compression::kZlib;
  }
  return Compression::kNone;
}

absl::StatusOr<base::UniqueFd> UnnamedFile() {
  std::error_code error;
  std::string folder = std::filesystem::temp_directory_path(error).string();
  if (folder.empty()) folder = "/tmp";
  base::UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  // O_TMPFILE is not supported by every file system.
  if (!fd.valid()) {
    std::string name = base::JoinPath(folder, "muster-records-XXXXXX");
    fd = base::UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
    if (fd.valid()) ::unlink(name.c_str());
  }
  if (!fd.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create a temporary file in ", folder,
                                                   "; set TMPDIR to a writable folder"));
  }
  return fd;
}

}  // namespace

absl::string_view ToString(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kGzip:
      return "gzip";
    case Compression::kZlib:
      return "zlib";
  }
  return "";
}

std::optional<Compression> ParseCompression(absl::string_view name) {
  for (const auto value : {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    if (ToString(value) == name) return value;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern) {
  if (absl::StrContains(pattern, "://")) {
    return absl::UnimplementedError(absl::StrCat(
        pattern, ": records are read from local disks only; copy the files here first"));
  }
  struct stat info {};
  if (::stat(pattern.c_str(), &info) == 0) return std::vector<std::string>{pattern};
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (code == GLOB_NOSPACE) return absl::ResourceExhaustedError("not enough memory for file names");
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no file matches ", pattern,
                     "; check the path, and quote it so that the shell does not expand it"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<RecordFile> RecordFile::Open(const std::string& path, const Options& options) {
  RecordFile file(path);
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": is not a regular file"));
  }
  auto mapping = base::Mapping::Of(fd.get(), info.st_size);
  if (!mapping.ok()) return base::Annotate(mapping.status(), path);
  file.map_ = *std::move(mapping);
  file.bytes_on_disk_ = info.st_size;
  file.compression_ = options.compression ? *options.compression : Detect(file.map_.bytes());
  if (file.compression_ != Compression::kNone) {
    const absl::Status status = file.Decompress(options);
    if (!status.ok()) return base::Annotate(status, path);
  }
  return file;
}

absl::Status RecordFile::Decompress(const Options& options) {
  const Deflated frame = compression_ == Compression::kGzip ? Deflated::kGzip : Deflated::kZlib;
  Gunzip gunzip(map_.bytes(), frame);
  in_memory_ = true;
  // The records before damaged bytes remain readable. RecordReader reports the damage after them.
  while (static_cast<int64_t>(memory_.size()) <= options.memory) {
    const auto piece = gunzip.Read(kPiece);
    if (!piece.ok()) damage_ = piece.status();
    if (!piece.ok() || piece->empty()) {
      map_ = base::Mapping();
      return absl::OkStatus();
    }
    memory_.append(*piece);
  }
  return Spill(gunzip, options);
}

absl::Status RecordFile::Spill(Gunzip& gunzip, const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(const base::UniqueFd fd, UnnamedFile());
  MUSTER_RETURN_IF_ERROR(base::WriteAll(fd.get(), memory_));
  auto size = static_cast<int64_t>(memory_.size());
  memory_ = std::string();
  for (;;) {
    const auto piece = gunzip.Read(kPiece);
    if (!piece.ok()) damage_ = piece.status();
    if (!piece.ok() || piece->empty()) break;
    size += static_cast<int64_t>(piece->size());
    if (size > options.decompressed) {
      return absl::ResourceExhaustedError(
          absl::StrCat("decompresses to more than ", options.decompressed,
                       " bytes; decompress it yourself, or write smaller shards"));
    }
    MUSTER_RETURN_IF_ERROR(
        base::Annotate(base::WriteAll(fd.get(), *piece),
                       "decompressing into the folder for temporary files (TMPDIR)"));
  }
  MUSTER_ASSIGN_OR_RETURN(map_, base::Mapping::Of(fd.get(), size));
  in_memory_ = false;
  return absl::OkStatus();
}

std::string RecordFile::Place(int64_t number, int64_t offset) const {
  return absl::StrCat(path_, ", record ", number, " at byte ", offset,
                      compression_ == Compression::kNone ? "" : " of the decompressed content");
}

absl::StatusOr<std::optional<Record>> RecordReader::Next() {
  for (;;) {
    MUSTER_RETURN_IF_ERROR(status_);
    if (ended_) return std::nullopt;
    auto record = NextOrDamage();
    if (record.ok()) {
      if (!*record) ended_ = true;
      return record;
    }
    if (on_error_ == OnError::kSkip) {
      RecordProblem(record.status());
    } else {
      status_ = record.status();
    }
  }
}

// After damaged data, offset_ is behind the record; after other damage, at the end of the file.
absl::StatusOr<std::optional<Record>> RecordReader::NextOrDamage() {
  const absl::string_view rest = file_.bytes().substr(static_cast<size_t>(offset_));
  const std::string::size_type left = rest.size();
  const auto lost = [&](absl::string_view why) {
    const std::string place = file_.Place(number_, offset_);
    bytes_left_out_ += static_cast<int64_t>(left);
    offset_ += static_cast<int64_t>(left);
    ended_ = true;
    return absl::DataLossError(absl::StrCat(place, ": ", why));
  };
  if (left == 0 && file_.damage().ok()) return std::nullopt;
  if (left < base::kRecordHeaderBytes) {
    if (!file_.damage().ok()) return lost(file_.damage().message());
    return lost(
        absl::StrCat("the file is truncated: ", left, " bytes follow, too few for a record"));
  }
  const auto length = base::DataLength(rest.substr(0, base::kRecordHeaderBytes));
  if (!length.ok()) {
    return lost(offset_ == 0 ? "the checksum of its length is wrong: the file is damaged, or not a "
                               "TFRecord file"
                             : "the checksum of its length is wrong: the file is damaged");
  }
  const uint64_t room = left - base::kRecordHeaderBytes;
  if (*length > room || room - *length < base::kRecordFooterBytes) {
    if (!file_.damage().ok()) return lost(file_.damage().message());
    return lost(absl::StrCat("its length is ", *length, " bytes, but ", room,
                             " follow: the file is truncated"));
  }
  const Record record{number_, offset_, rest.substr(base::kRecordHeaderBytes, *length)};
  ++number_;
  offset_ += static_cast<int64_t>(base::kRecordHeaderBytes + *length + base::kRecordFooterBytes);
  if (check_ == Check::kAll) {
    const absl::Status status = CheckRecord(file_, record.offset).status();
    if (!status.ok()) {
      ++damaged_records_;
      return base::Annotate(status, file_.Place(record.number, record.offset));
    }
  }
  return record;
}

void RecordReader::RecordProblem(const absl::Status& status) {
  if (problems_.size() < kMaxProblems) problems_.emplace_back(status.message());
}

absl::StatusOr<absl::string_view> CheckRecord(const RecordFile& file, int64_t offset) {
  absl::string_view rest = file.bytes().substr(static_cast<size_t>(offset));
  const auto length = base::DataLength(rest.substr(0, base::kRecordHeaderBytes));
  rest.remove_prefix(base::kRecordHeaderBytes);
  const absl::string_view data = rest.substr(0, length.value_or(0));
  if (base::CheckData(data, rest.substr(data.size(), base::kRecordFooterBytes)).ok()) return data;
  return absl::DataLossError("the checksum of its data is wrong");
}

}  // namespace muster::data
