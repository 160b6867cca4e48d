#include "worktree/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"

namespace muster::worktree {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kPieceBytes = 1 << 20;
constexpr int kLevel = 1;  // higher levels are slower than the network
constexpr int kGzipWindow = 15 + 16;
constexpr int64_t kTime = 315532800;  // 1980: tar warns about older files
constexpr int64_t kMaxExtension = 1 << 20;
constexpr char kZeros[2 * kBlock] = {};
constexpr char kFormat[] = "2\n";  // part of every package name; change it with the format

// Header block of a file in the POSIX ustar format.
struct Header {
  char name[100];
  char mode[8], uid[8], gid[8];
  char size[12], mtime[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6];
  char version[2];
  char user[32], group[32];
  char major[8], minor[8];
  char prefix[155];
  char rest[12];
};
static_assert(sizeof(Header) == kBlock);

template <size_t n>
void PutText(char (&field)[n], absl::string_view text) {
  std::memcpy(field, text.data(), std::min(n, text.size()));
}

template <size_t n>
void PutNumber(char (&field)[n], int64_t number) {
  PutText(field, absl::StrFormat("%0*o", static_cast<int>(n) - 1, number));
}

template <size_t n>
absl::string_view Text(const char (&field)[n]) {
  return {field, ::strnlen(field, n)};
}

template <size_t n>
absl::StatusOr<int64_t> Number(const char (&field)[n]) {
  int64_t number = 0;
  for (const char c : Text(field)) {
    if (c == ' ') continue;
    if (c < '0' || c > '7' || number > (INT64_MAX >> 3)) {
      return absl::DataLossError("a number in the archive is damaged");
    }
    number = number * 8 + (c - '0');
  }
  return number;
}

// Returns the length of the part of `path` for the field `prefix`, such that the rest after the '/'
// fits the field `name`; 0 if the whole path fits, nullopt if there is no such part.
std::optional<size_t> PrefixLength(absl::string_view path) {
  if (path.size() <= sizeof(Header::name)) return 0;
  const size_t slash = path.find('/', path.size() - sizeof(Header::name) - 1);
  if (slash == absl::string_view::npos || slash == 0 || slash > sizeof(Header::prefix) ||
      slash + 1 == path.size()) {
    return std::nullopt;
  }
  return slash;
}

// Returns the checksum of a header, for which its own field counts as spaces.
int64_t Checksum(Header header) {
  std::memset(header.checksum, ' ', sizeof(header.checksum));
  std::array<unsigned char, kBlock> bytes{};
  std::memcpy(bytes.data(), &header, kBlock);
  int64_t sum = 0;
  for (const unsigned char byte : bytes) sum += byte;
  return sum;
}

absl::Status PutHeader(absl::string_view name, int64_t bytes, char type, int mode,
                       absl::string_view link, const ByteSink& sink) {
  Header header{};
  if (const size_t prefix = PrefixLength(name).value_or(0); prefix > 0) {
    PutText(header.prefix, name.substr(0, prefix));
    name.remove_prefix(prefix + 1);
  }
  PutText(header.name, name);
  PutNumber(header.mode, mode);
  PutNumber(header.uid, 0);
  PutNumber(header.gid, 0);
  PutNumber(header.size, bytes);
  PutNumber(header.mtime, kTime);
  header.type = type;
  PutText(header.link, link);
  PutText(header.magic, absl::string_view("ustar\0", 6));
  PutText(header.version, "00");
  PutText(header.checksum, absl::StrFormat("%06o", Checksum(header)));
  header.checksum[7] = ' ';
  return sink({reinterpret_cast<const char*>(&header), kBlock});
}

absl::Status Pad(int64_t bytes, const ByteSink& sink) {
  const size_t rest = static_cast<size_t>(bytes) % kBlock;
  return rest == 0 ? absl::OkStatus() : sink({kZeros, kBlock - rest});
}

// Returns a pax record such as "27 path=a/long/name\n". The length includes its own digits.
std::string ExtensionRecord(absl::string_view key, absl::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (length != rest + absl::StrCat(length).size()) {
    length = rest + absl::StrCat(length).size();
  }
  return absl::StrCat(length, " ", key, "=", value, "\n");
}

// The extension has every long name, for programs that read it (ours does not read the prefix).
absl::Status PutExtension(const WorkFile& file, const ByteSink& sink) {
  const std::string& link = file.link_target;
  std::string records;
  if (file.path.size() > sizeof(Header::name)) records += ExtensionRecord("path", file.path);
  if (link.size() > sizeof(Header::link)) records += ExtensionRecord("linkpath", link);
  if (records.empty()) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(records.size());
  MUSTER_RETURN_IF_ERROR(PutHeader("extension", bytes, 'x', 0644, "", sink));
  MUSTER_RETURN_IF_ERROR(sink(records));
  return Pad(bytes, sink);
}

absl::Status Changed(const std::string& path) {
  return absl::AbortedError(
      absl::StrCat(path, ": changed while it was packaged; run the command again"));
}

absl::Status PutContent(const std::string& path, const WorkFile& file, std::string& buffer,
                        const ByteSink& sink) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return base::DiskError(errno, path);
  base::Sha256 sum;
  int64_t left = file.size;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::DiskError(errno, path);
    if (got == 0) break;
    left -= got;
    if (left < 0) return Changed(path);
    const absl::string_view bytes(buffer.data(), static_cast<size_t>(got));
    sum.Update(bytes);
    MUSTER_RETURN_IF_ERROR(sink(bytes));
  }
  if (left != 0 || (!file.sha256.empty() && sum.Finish() != file.sha256)) return Changed(path);
  return Pad(file.size, sink);
}

absl::Status Damaged(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the package is damaged: ", why));
}

}  // namespace

bool FitsUstar(const WorkFile& file) {
  return PrefixLength(file.path).has_value() && file.link_target.size() <= sizeof(Header::link);
}

absl::Status WriteTar(const std::string& root, const std::vector<WorkFile>& files,
                      const ByteSink& sink) {
  std::string buffer(kPieceBytes, '\0');
  for (const WorkFile& file : files) {
    MUSTER_RETURN_IF_ERROR(PutExtension(file, sink));
    if (file.is_link()) {
      MUSTER_RETURN_IF_ERROR(PutHeader(file.path, 0, '2', 0777, file.link_target, sink));
      continue;
    }
    MUSTER_RETURN_IF_ERROR(
        PutHeader(file.path, file.size, '0', static_cast<int>(file.mode), "", sink));
    MUSTER_RETURN_IF_ERROR(PutContent(base::JoinPath(root, file.path), file, buffer, sink));
  }
  return sink({kZeros, sizeof(kZeros)});
}

Gzip::Gzip(ByteSink sink)
    : sink_(std::move(sink)), stream_(std::make_unique<z_stream>()), buffer_(kPieceBytes, '\0') {
  // Fails only if memory is exhausted, which ends the program anyway.
  ::deflateInit2(stream_.get(), kLevel, Z_DEFLATED, kGzipWindow, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);
}

Gzip::~Gzip() { ::deflateEnd(stream_.get()); }

absl::Status Gzip::Run(absl::string_view bytes, int flush) {
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_->avail_in = static_cast<uInt>(bytes.size());
  int result = Z_OK;
  do {
    stream_->next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_->avail_out = static_cast<uInt>(buffer_.size());
    result = ::deflate(stream_.get(), flush);
    if (result == Z_STREAM_ERROR) return absl::InternalError("zlib does not compress");
    const size_t made = buffer_.size() - stream_->avail_out;
    if (made > 0) MUSTER_RETURN_IF_ERROR(sink_({buffer_.data(), made}));
  } while (stream_->avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END));
  return absl::OkStatus();
}

absl::Status Gzip::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const absl::string_view piece = bytes.substr(0, kPieceBytes);
    MUSTER_RETURN_IF_ERROR(Run(piece, Z_NO_FLUSH));
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status Gzip::Finish() { return Run("", Z_FINISH); }

PackageDigest::PackageDigest() { sum_.Update(absl::string_view(kFormat)); }

void PackageDigest::Add(const WorkFile& file) {
  // The lengths keep a name or a link target from imitating further entries.
  sum_.Update(absl::StrCat(file.mode, " ", file.sha256, " ", file.path.size(), " ", file.path, " ",
                           file.link_target.size(), " ", file.link_target, "\n"));
}

// Parses an archive block by block.
class Unpacker::Tar {
 public:
  explicit Tar(base::ConfinedFolder& folder) : folder_(folder) {}

  absl::Status Take(absl::string_view bytes) {
    while (!bytes.empty()) {
      if (left_ > 0 || padding_ > 0) {
        MUSTER_RETURN_IF_ERROR(TakeContent(bytes));
        continue;
      }
      const size_t piece = std::min(bytes.size(), kBlock - block_.size());
      block_.append(bytes.data(), piece);
      bytes.remove_prefix(piece);
      if (block_.size() < kBlock) break;
      MUSTER_RETURN_IF_ERROR(TakeHeader());
      block_.clear();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Finish() {
    if (!ended_) return Damaged("unexpected end");
    // Links are created after all files, so that no entry is written through a link of this
    // archive.
    for (const WorkFile& link : links_) {
      MUSTER_RETURN_IF_ERROR(Checked(folder_.CreateLink(link.path, link.link_target)));
    }
    return digest_.Finish();
  }

 private:
  absl::Status TakeHeader() {
    Header header;
    std::memcpy(&header, block_.data(), kBlock);
    if (block_ == absl::string_view(kZeros, kBlock)) {
      ended_ = true;
      return absl::OkStatus();
    }
    if (ended_) return Damaged("data after the end");
    MUSTER_ASSIGN_OR_RETURN(const int64_t sum, Number(header.checksum));
    MUSTER_ASSIGN_OR_RETURN(const int64_t bytes, Number(header.size));
    MUSTER_ASSIGN_OR_RETURN(const int64_t mode, Number(header.mode));
    if (sum != Checksum(header)) return Damaged("wrong checksum");
    const std::string name =
        extended_name_.empty() ? std::string(Text(header.name)) : std::exchange(extended_name_, "");
    left_ = bytes;
    padding_ = (kBlock - static_cast<size_t>(bytes) % kBlock) % kBlock;
    extension_.clear();
    in_extension_ = header.type == 'x';
    if (in_extension_) {
      return bytes <= kMaxExtension ? absl::OkStatus() : Damaged("a name is too long");
    }
    if (header.type == '2' && bytes == 0) {
      links_.push_back({.path = name,
                        .link_target = extended_link_.empty() ? std::string(Text(header.link))
                                                              : std::exchange(extended_link_, "")});
      digest_.Add(links_.back());
      return absl::OkStatus();
    }
    if (header.type != '0') return Damaged("unsupported type of entry");
    return Open({.path = name, .mode = (mode & 0111) != 0 ? 0755U : 0644U});
  }

  // A rejected name means a damaged archive; an error of the disk does not.
  static absl::Status Checked(const absl::Status& status) {
    const bool damaged = absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
                         absl::IsAlreadyExists(status);
    return damaged ? Damaged(status.message()) : status;
  }

  absl::Status Open(WorkFile entry) {
    auto file = folder_.CreateFile(entry.path, entry.mode);
    MUSTER_RETURN_IF_ERROR(Checked(file.status()));
    file_ = *std::move(file);
    entry_ = std::move(entry);
    content_ = base::Sha256();
    if (left_ == 0) CloseFile();
    return absl::OkStatus();
  }

  void CloseFile() {
    file_.Reset();
    entry_.sha256 = content_.Finish();
    digest_.Add(entry_);
  }

  absl::Status TakeContent(absl::string_view& bytes) {
    const size_t piece =
        static_cast<size_t>(std::min<int64_t>(left_, static_cast<int64_t>(bytes.size())));
    if (piece > 0) {
      const absl::string_view content = bytes.substr(0, piece);
      if (in_extension_) {
        extension_.append(content.data(), content.size());
      } else {
        content_.Update(content);
        MUSTER_RETURN_IF_ERROR(base::WriteAll(file_.get(), content));
      }
      bytes.remove_prefix(piece);
      left_ -= static_cast<int64_t>(piece);
    }
    if (left_ > 0) return absl::OkStatus();
    const size_t skipped = std::min(padding_, bytes.size());
    bytes.remove_prefix(skipped);
    padding_ -= skipped;
    if (padding_ > 0) return absl::OkStatus();
    if (in_extension_) return ReadExtension();
    CloseFile();
    return absl::OkStatus();
  }

  absl::Status ReadExtension() {
    in_extension_ = false;
    absl::string_view rest = extension_;
    while (!rest.empty()) {
      const size_t space = rest.find(' ');
      size_t length = 0;
      if (space == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, space), &length) ||
          length <= space + 1 || length > rest.size()) {
        return Damaged("unreadable name");
      }
      const absl::string_view record = rest.substr(space + 1, length - space - 2);
      rest.remove_prefix(length);
      const size_t sign = record.find('=');
      if (sign == absl::string_view::npos) return Damaged("unreadable name");
      if (record.substr(0, sign) == "path") extended_name_ = std::string(record.substr(sign + 1));
      if (record.substr(0, sign) == "linkpath") {
        extended_link_ = std::string(record.substr(sign + 1));
      }
    }
    return absl::OkStatus();
  }

  base::ConfinedFolder& folder_;
  PackageDigest digest_;
  std::string block_;
  int64_t left_ = 0;
  size_t padding_ = 0;
  bool in_extension_ = false;
  bool ended_ = false;
  std::string extension_, extended_name_, extended_link_;
  base::UniqueFd file_;
  WorkFile entry_;  // being written
  base::Sha256 content_;
  std::vector<WorkFile> links_;
};

Unpacker::Unpacker(base::ConfinedFolder& folder)
    : stream_(std::make_unique<z_stream>()),
      tar_(std::make_unique<Tar>(folder)),
      buffer_(kPieceBytes, '\0') {
  ::inflateInit2(stream_.get(), kGzipWindow);
}

Unpacker::~Unpacker() { ::inflateEnd(stream_.get()); }

absl::Status Unpacker::Write(absl::string_view bytes) {
  if (bytes.size() > kPieceBytes) {
    MUSTER_RETURN_IF_ERROR(Write(bytes.substr(0, kPieceBytes)));
    return Write(bytes.substr(kPieceBytes));
  }
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_->avail_in = static_cast<uInt>(bytes.size());
  do {
    if (ended_) return stream_->avail_in == 0 ? absl::OkStatus() : Damaged("data after the end");
    stream_->next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_->avail_out = static_cast<uInt>(buffer_.size());
    const int result = ::inflate(stream_.get(), Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return Damaged(stream_->msg == nullptr ? "not compressed" : stream_->msg);
    }
    ended_ = result == Z_STREAM_END;
    MUSTER_RETURN_IF_ERROR(tar_->Take({buffer_.data(), buffer_.size() - stream_->avail_out}));
  } while (stream_->avail_in > 0 || stream_->avail_out == 0);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Unpacker::Finish() {
  return ended_ ? tar_->Finish() : Damaged("unexpected end");
}

}  // namespace muster::worktree
