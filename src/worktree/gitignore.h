// Matches paths against a .gitignore file by git's rules.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::worktree {

// A parsed .gitignore. Matching takes O(pattern × path) time for any input. Comparison is by byte:
// case-sensitive and independent of the locale.
class GitIgnore {
 public:
  enum class Verdict {
    kNone,     // no line matches
    kIgnored,  // the last matching line ignores it
    kKept,     // the last matching line begins with '!'
  };

  // Never fails: an invalid line matches nothing, as in git.
  static GitIgnore Parse(absl::string_view text);

  // Returns the verdict on `path`, which is relative to the folder of the .gitignore and has no '/'
  // at either end. A symbolic link to a folder is not a folder. The parents of `path` are not
  // matched: the caller does not descend into ignored folders.
  Verdict Match(absl::string_view path, bool is_folder) const;
  // Returns true if the verdict is kKept by a line without wildcards: its author named this very
  // file.
  bool KeepsByName(absl::string_view path, bool is_folder) const;

  bool empty() const { return patterns_.empty(); }

 private:
  // A pattern is a nondeterministic automaton. A token leads from one state to the next.
  struct Token {
    enum class Kind : uint8_t {
      kByte,    // `byte`
      kAny,     // any byte except '/'
      kSet,     // a byte in `sets[set]`
      kStar,    // any number of bytes except '/'
      kAll,     // any number of bytes
      kFolders  // makes the next two tokens (kAll, '/') optional
    };
    Kind kind;
    unsigned char byte = 0;
    uint32_t set = 0;
  };
  using Bytes = std::bitset<256>;

  struct Pattern {
    bool keeps = false;         // begins with '!'
    bool folders_only = false;  // ends in '/'
    bool name_only = false;     // has no '/': matches the last component of a path
    bool never = false;         // matches nothing
    bool suffix = false;        // '*' followed by `literal`
    std::string literal;        // the whole pattern if `tokens` is empty
    std::vector<Token> tokens;
    std::vector<Bytes> sets;
  };
  class Compiler;

  static Pattern ParseLine(absl::string_view line);
  static bool Matches(const Pattern& pattern, absl::string_view text);
  // Returns the last pattern that matches, or nullptr.
  const Pattern* Last(absl::string_view path, bool is_folder) const;

  std::vector<Pattern> patterns_;
};

}  // namespace muster::worktree
