#include "worktree/gitignore.h"

#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::worktree {
namespace {

constexpr absl::string_view kSpecial = "*?[\\";

// Removes trailing spaces, except those escaped with a backslash.
absl::string_view WithoutTrailingSpaces(absl::string_view line) {
  size_t end = 0;  // after the last byte to keep
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      if (++i == line.size()) return line;
      end = i + 1;
    } else if (line[i] != ' ') {
      end = i + 1;
    }
  }
  return line.substr(0, end);
}

using Predicate = bool (*)(unsigned char);

std::optional<Predicate> ClassNamed(absl::string_view name) {
  static constexpr std::pair<absl::string_view, Predicate> kClasses[] = {
      {"alnum", absl::ascii_isalnum}, {"alpha", absl::ascii_isalpha},
      {"blank", absl::ascii_isblank}, {"cntrl", absl::ascii_iscntrl},
      {"digit", absl::ascii_isdigit}, {"graph", absl::ascii_isgraph},
      {"lower", absl::ascii_islower}, {"print", absl::ascii_isprint},
      {"punct", absl::ascii_ispunct}, {"space", absl::ascii_isspace},
      {"upper", absl::ascii_isupper}, {"xdigit", absl::ascii_isxdigit}};
  for (const auto& [known, predicate] : kClasses) {
    if (name == known) return predicate;
  }
  return std::nullopt;
}

}  // namespace

// Translates the text of a pattern into tokens.
class GitIgnore::Compiler {
 public:
  Compiler(absl::string_view text, Pattern& out) : text_(text), out_(out) {}

  // Returns false if the pattern can match nothing.
  bool Run() {
    const size_t first_special = text_.find_first_of(kSpecial);
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '*') {
        AddStars(/*is_first=*/at_ == first_special);
      } else if (c == '[') {
        if (!AddSet()) return false;
      } else if (c == '?') {
        Add({.kind = Token::Kind::kAny});
        ++at_;
      } else {
        if (c == '\\' && ++at_ == text_.size()) return false;
        Add({.kind = Token::Kind::kByte, .byte = static_cast<unsigned char>(text_[at_++])});
      }
    }
    return true;
  }

 private:
  void Add(Token token) { out_.tokens.push_back(token); }
  absl::string_view Rest() const { return text_.substr(at_); }

  // "**" crosses folders if it is a whole path component. As in git, it also does so if it only
  // ends a component, provided that no special character precedes it.
  void AddStars(bool is_first) {
    const bool begins_part = is_first || text_[at_ - 1] == '/';
    size_t stars = 0;
    for (; at_ < text_.size() && text_[at_] == '*'; ++at_) ++stars;
    const bool ends_part = Rest().empty() || Rest()[0] == '/' || absl::StartsWith(Rest(), "\\/");
    if (stars == 1 || !begins_part || !ends_part) {
      Add({.kind = Token::Kind::kStar});
      return;
    }
    if (absl::StartsWith(Rest(), "/")) Add({.kind = Token::Kind::kFolders});
    Add({.kind = Token::Kind::kAll});  // the '/' follows as the next byte of the text
  }

  // Consumes the byte at `at_`, without the backslash before it. Returns nullopt at the end of the
  // text.
  std::optional<unsigned char> Escaped() {
    if (at_ < text_.size() && text_[at_] == '\\') ++at_;
    if (at_ == text_.size()) return std::nullopt;
    return static_cast<unsigned char>(text_[at_++]);
  }

  // Consumes a class such as "[:digit:]" at `at_`. Returns nullopt if the text has another form:
  // the bracket is literal then. Returns false if the class is unknown or the text ends.
  std::optional<bool> AddClass(Bytes& set) {
    if (!absl::StartsWith(Rest(), "[:")) return std::nullopt;
    const size_t end = text_.find(']', at_ + 2);
    if (end == absl::string_view::npos) return false;
    if (end == at_ + 2 || text_[end - 1] != ':') return std::nullopt;
    const auto predicate = ClassNamed(text_.substr(at_ + 2, end - at_ - 3));
    if (!predicate.has_value()) return false;
    for (size_t byte = 0; byte < set.size(); ++byte) {
      if ((*predicate)(static_cast<unsigned char>(byte))) set.set(byte);
    }
    at_ = end + 1;
    return true;
  }

  // Consumes one member of a set: a byte, a range or a class. `previous` is the byte that may start
  // a range. Returns false if the set is invalid.
  bool AddMember(Bytes& set, std::optional<unsigned char>& previous) {
    if (const auto is_class = AddClass(set)) {
      previous.reset();
      return *is_class;
    }
    const bool is_range = text_[at_] == '-' && previous.has_value() && at_ + 1 < text_.size() &&
                          text_[at_ + 1] != ']';
    if (is_range) ++at_;
    const auto byte = Escaped();
    if (!byte.has_value()) return false;
    for (unsigned from = is_range ? *previous : *byte; from <= *byte; ++from) set.set(from);
    previous = is_range ? std::nullopt : byte;
    return true;
  }

  bool AddSet() {
    ++at_;
    const bool negated = at_ < text_.size() && (text_[at_] == '!' || text_[at_] == '^');
    if (negated) ++at_;
    Bytes set;
    std::optional<unsigned char> previous;
    for (bool first = true;; first = false) {
      if (at_ == text_.size()) return false;
      if (text_[at_] == ']' && !first) break;
      if (!AddMember(set, previous)) return false;
    }
    ++at_;
    if (negated) set.flip();
    set.reset('/');  // not even a negated set matches '/'
    Add({.kind = Token::Kind::kSet, .set = static_cast<uint32_t>(out_.sets.size())});
    out_.sets.push_back(set);
    return true;
  }

  const absl::string_view text_;
  Pattern& out_;
  size_t at_ = 0;
};

GitIgnore::Pattern GitIgnore::ParseLine(absl::string_view line) {
  Pattern pattern;
  pattern.keeps = absl::ConsumePrefix(&line, "!");
  pattern.folders_only = absl::ConsumeSuffix(&line, "/");
  pattern.name_only = !absl::StrContains(line, '/');
  absl::ConsumePrefix(&line, "/");
  pattern.literal = std::string(line);
  // Literals and suffixes ("*.o"), the most common patterns, need no automaton.
  const size_t special = line.find_first_of(kSpecial);
  if (line.empty()) {
    pattern.never = true;
  } else if (pattern.name_only && special == 0 && line[0] == '*' &&
             line.find_first_of(kSpecial, 1) == absl::string_view::npos) {
    pattern.suffix = true;
    pattern.literal.erase(0, 1);
  } else if (special != absl::string_view::npos) {
    pattern.never = !Compiler(line, pattern).Run();
  }
  return pattern;
}

GitIgnore GitIgnore::Parse(absl::string_view text) {
  GitIgnore result;
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // byte order mark
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = line.substr(0, line.find('\0'));
    if (line.empty() || line[0] == '#') continue;
    absl::ConsumeSuffix(&line, "\r");
    Pattern pattern = ParseLine(WithoutTrailingSpaces(line));
    if (!pattern.never) result.patterns_.push_back(std::move(pattern));
  }
  return result;
}

// Simulates the automaton in all of its states in parallel: `now[i]` is set if the text so far
// leads to token i.
bool GitIgnore::Matches(const Pattern& pattern, absl::string_view text) {
  if (pattern.suffix) return absl::EndsWith(text, pattern.literal);
  if (pattern.tokens.empty()) return text == pattern.literal;
  const std::vector<Token>& tokens = pattern.tokens;
  // Most names fail at their first or last byte, which is far cheaper than running the automaton.
  const auto excludes = [](const Token& token, char c) {
    return token.kind == Token::Kind::kByte && token.byte != static_cast<unsigned char>(c);
  };
  if (!text.empty() &&
      (excludes(tokens.front(), text.front()) || excludes(tokens.back(), text.back()))) {
    return false;
  }
  using States = absl::InlinedVector<char, 128>;
  // Adds the states that are reachable without a byte. Such steps lead forward, so one pass is
  // enough.
  const auto close = [&tokens](States& states) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!states[i]) continue;
      const Token::Kind kind = tokens[i].kind;
      if (kind == Token::Kind::kFolders) states[i + 3] = 1;
      if (kind == Token::Kind::kFolders || kind == Token::Kind::kStar ||
          kind == Token::Kind::kAll) {
        states[i + 1] = 1;
      }
    }
  };
  States now(tokens.size() + 1, 0), next;
  now[0] = 1;
  close(now);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    next.assign(tokens.size() + 1, 0);
    bool alive = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!now[i]) continue;
      const Token& token = tokens[i];
      const bool stays =
          token.kind == Token::Kind::kAll || (token.kind == Token::Kind::kStar && byte != '/');
      const bool moves = (token.kind == Token::Kind::kByte && token.byte == byte) ||
                         (token.kind == Token::Kind::kAny && byte != '/') ||
                         (token.kind == Token::Kind::kSet && pattern.sets[token.set][byte]);
      if (stays) next[i] = 1;
      if (moves) next[i + 1] = 1;
      alive |= stays || moves;
    }
    if (!alive) return false;
    close(next);
    now.swap(next);
  }
  return now[tokens.size()] != 0;
}

const GitIgnore::Pattern* GitIgnore::Last(absl::string_view path, bool is_folder) const {
  const size_t slash = path.rfind('/');
  const absl::string_view name = slash == absl::string_view::npos ? path : path.substr(slash + 1);
  for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern) {
    if (pattern->folders_only && !is_folder) continue;
    if (Matches(*pattern, pattern->name_only ? name : path)) return &*pattern;
  }
  return nullptr;
}

GitIgnore::Verdict GitIgnore::Match(absl::string_view path, bool is_folder) const {
  const Pattern* last = Last(path, is_folder);
  if (last == nullptr) return Verdict::kNone;
  return last->keeps ? Verdict::kKept : Verdict::kIgnored;
}

bool GitIgnore::KeepsByName(absl::string_view path, bool is_folder) const {
  const Pattern* last = Last(path, is_folder);
  return last != nullptr && last->keeps && !last->suffix && last->tokens.empty();
}

}  // namespace muster::worktree
