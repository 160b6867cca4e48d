// Decodes the bytes that a terminal sends for keys. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::cli {

enum class Key {
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kEscape,
  kBackspace,
  kRedraw,     // Ctrl-L
  kCharacter,  // KeyPress::text
};

struct KeyPress {
  Key key = Key::kCharacter;
  std::string text;  // one printable UTF-8 character
  bool operator==(const KeyPress&) const = default;
};

// Splits input into keys, also if a key arrives in several reads. Ignores sequences of keys that it
// does not know. Not thread-safe.
class KeyDecoder {
 public:
  // Returns the keys that are complete.
  std::vector<KeyPress> Feed(absl::string_view bytes);
  // Returns whether an escape sequence has begun. If nothing follows it soon, call Flush(): the
  // Escape key sends the same byte as the beginning of a sequence.
  bool pending() const { return !buffer_.empty(); }
  std::vector<KeyPress> Flush();

 private:
  std::string buffer_;
};

}  // namespace muster::cli
