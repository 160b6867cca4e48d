#include "platform/ssh/libraries.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"

namespace muster::ssh {
namespace {

constexpr int64_t kMaxProgramBytes = int64_t{1} << 30;

// Reads a T at `offset`, or returns nullopt beyond the end of the file. memcpy, because the data
// may be unaligned.
template <typename T>
std::optional<T> At(absl::string_view file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::vector<Elf64_Phdr> Segments(absl::string_view file) {
  const auto header = At<Elf64_Ehdr>(file, 0);
  if (!header.has_value() || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  std::vector<Elf64_Phdr> segments;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = At<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.has_value()) segments.push_back(*segment);
  }
  return segments;
}

std::vector<Elf64_Dyn> DynamicEntries(absl::string_view file,
                                      const std::vector<Elf64_Phdr>& segments) {
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at < segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = At<Elf64_Dyn>(file, segment.p_offset + at);
      if (!entry.has_value() || entry->d_tag == DT_NULL) break;
      entries.push_back(*entry);
    }
  }
  return entries;
}

}  // namespace

std::vector<std::string> NeededLibraries(const std::string& path) {
  const auto content = base::ReadFile(path, kMaxProgramBytes);
  if (!content.ok()) return {};
  const absl::string_view file = *content;
  const std::vector<Elf64_Phdr> segments = Segments(file);
  const std::vector<Elf64_Dyn> entries = DynamicEntries(file, segments);
  uint64_t names = 0;  // file offset of the string table
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag != DT_STRTAB) continue;
    // DT_STRTAB is a virtual address; the segments map it to a file offset.
    for (const Elf64_Phdr& segment : segments) {
      const uint64_t within = entry.d_un.d_ptr - segment.p_vaddr;
      if (segment.p_type == PT_LOAD && within < segment.p_filesz) names = segment.p_offset + within;
    }
  }
  std::vector<std::string> needed;
  for (const Elf64_Dyn& entry : entries) {
    const uint64_t at = names + entry.d_un.d_val;
    if (entry.d_tag != DT_NEEDED || names == 0 || at >= file.size()) continue;
    const absl::string_view rest = file.substr(at);
    needed.emplace_back(rest.substr(0, rest.find('\0')));
  }
  return needed;
}

std::vector<std::string> NotIn(absl::string_view known, const std::vector<std::string>& needed) {
  // Format: "\tlibz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1"
  std::set<std::string> names;
  for (const absl::string_view line : absl::StrSplit(known, '\n')) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    names.emplace(text.substr(0, text.find(' ')));
  }
  std::vector<std::string> missing;
  for (const std::string& name : needed) {
    if (!names.contains(name)) missing.push_back(name);
  }
  return missing;
}

}  // namespace muster::ssh
