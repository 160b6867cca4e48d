#include "cli/top/keys.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"

namespace muster::cli {
namespace {

constexpr char kEsc = '\x1b';

// Longer sequences are not of keys that this program knows.
constexpr size_t kLongestSequence = 16;

constexpr std::pair<absl::string_view, Key> kSequences[] = {
    {"[A", Key::kUp},      {"[B", Key::kDown},      {"[C", Key::kRight}, {"[D", Key::kLeft},
    {"OA", Key::kUp},      {"OB", Key::kDown},      {"OC", Key::kRight}, {"OD", Key::kLeft},
    {"[H", Key::kHome},    {"[F", Key::kEnd},       {"OH", Key::kHome},  {"OF", Key::kEnd},
    {"[1~", Key::kHome},   {"[4~", Key::kEnd},      {"[7~", Key::kHome}, {"[8~", Key::kEnd},
    {"[5~", Key::kPageUp}, {"[6~", Key::kPageDown},
};

// Returns the length of the UTF-8 character that begins with this byte; 0 if none does.
size_t CharacterLength(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

// Returns the length of the escape sequence at the begin of `bytes`, or 0 if it is incomplete.
size_t SequenceLength(absl::string_view bytes) {
  if (bytes.size() < 2) return 0;
  if (bytes[1] == 'O') return bytes.size() < 3 ? 0 : 3;
  if (bytes[1] != '[') return 1;  // the Escape key, followed by another one
  for (size_t i = 2; i < bytes.size(); ++i) {
    if (bytes[i] >= '@' && bytes[i] <= '~') return i + 1;
    if (i >= kLongestSequence) return i + 1;
  }
  return 0;
}

std::optional<KeyPress> KeyOfSequence(absl::string_view sequence) {
  if (sequence.size() == 1) return KeyPress{Key::kEscape, ""};
  for (const auto& [known, key] : kSequences) {
    if (sequence.substr(1) == known) return KeyPress{key, ""};
  }
  return std::nullopt;
}

std::optional<KeyPress> KeyOfByte(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return KeyPress{Key::kEnter, ""};
    case '\x7f':
    case '\b':
      return KeyPress{Key::kBackspace, ""};
    case '\f':
      return KeyPress{Key::kRedraw, ""};
    default:
      if (static_cast<unsigned char>(byte) < ' ') return std::nullopt;
      return KeyPress{Key::kCharacter, std::string(1, byte)};
  }
}

}  // namespace

std::vector<KeyPress> KeyDecoder::Feed(absl::string_view bytes) {
  buffer_.append(bytes.data(), bytes.size());
  std::vector<KeyPress> keys;
  size_t at = 0;
  while (at < buffer_.size()) {
    const absl::string_view rest = absl::string_view(buffer_).substr(at);
    std::optional<KeyPress> key;
    size_t length = 0;
    if (rest[0] == kEsc) {
      length = SequenceLength(rest);
      if (length == 0) break;
      key = KeyOfSequence(rest.substr(0, length));
    } else {
      const size_t wanted = CharacterLength(static_cast<unsigned char>(rest[0]));
      if (wanted > rest.size()) break;
      length = wanted == 0 ? 1 : wanted;
      if (wanted == 1) key = KeyOfByte(rest[0]);
      if (wanted > 1) key = KeyPress{Key::kCharacter, std::string(rest.substr(0, wanted))};
    }
    if (key.has_value()) keys.push_back(*std::move(key));
    at += length;
  }
  buffer_.erase(0, at);
  return keys;
}

std::vector<KeyPress> KeyDecoder::Flush() {
  const std::string rest = std::exchange(buffer_, "");
  if (absl::StartsWith(rest, "\x1b")) return {KeyPress{Key::kEscape, ""}};
  return {};
}

}  // namespace muster::cli
