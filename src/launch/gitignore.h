// What one .gitignore file says, by git's rules.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// A .gitignore, read. Matching takes time in proportion to pattern times path, whatever they hold.
// Bytes are compared as they are: upper and lower case differ, and no locale is asked.
class GitIgnore {
 public:
  enum class Verdict {
    kNone,     // no line speaks of it
    kIgnored,  // the last line that does ignores it
    kKept,     // the last line that does begins with '!'
  };

  // A line that git makes nothing of matches nothing.
  static GitIgnore Parse(absl::string_view text);

  // `path` is relative to the folder of the .gitignore, with '/' between and none at either end. A
  // link to a folder is no folder.
  Verdict Match(absl::string_view path, bool is_folder) const;
  // Whether that verdict is kKept by a line without wildcards: its author meant this very name.
  bool KeepsByName(absl::string_view path, bool is_folder) const;

  bool empty() const { return patterns_.empty(); }

 private:
  // A pattern is a machine that may be in several states at once; a token is what leads from one
  // state to the next.
  struct Token {
    enum class Kind : uint8_t {
      kByte,    // this byte
      kAny,     // any byte but '/'
      kSet,     // one of a set
      kStar,    // any number of bytes but '/'
      kAll,     // any number of bytes
      kFolders  // the two tokens after it ("kAll, '/'"), or nothing
    };
    Kind kind;
    unsigned char byte = 0;
    uint32_t set = 0;
  };
  using Bytes = std::bitset<256>;

  struct Pattern {
    bool keeps = false;         // began with '!'
    bool folders_only = false;  // ended in '/'
    bool name_only = false;     // no '/': of the last part of a path
    bool never = false;         // cannot match
    bool suffix = false;        // "*" before `literal`
    std::string literal;        // without `tokens`: the whole of the pattern
    std::vector<Token> tokens;
    std::vector<Bytes> sets;
  };
  class Compiler;

  static Pattern ParseLine(absl::string_view line);
  static bool Matches(const Pattern& pattern, absl::string_view text);
  // The last pattern that matches; null when none does.
  const Pattern* Last(absl::string_view path, bool is_folder) const;

  std::vector<Pattern> patterns_;
};

}  // namespace muster
