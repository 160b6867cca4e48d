#include "worktree/command_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/files/files.h"

namespace muster::worktree {
namespace {

namespace fs = std::filesystem;

struct Word {
  std::string text;
  bool is_program = false;
};

// Tells the program of a command from its other words: `python` in `X=1 exec python train.py`.
class ProgramFinder {
 public:
  void BeginCommand() { expected_ = true; }
  // Called for each word in order. Returns true if it is the program, or runs another one.
  bool IsProgram(absl::string_view word) {
    constexpr std::array<absl::string_view, 6> kRunners = {"command", "env",   "exec",
                                                           "nice",    "nohup", "time"};
    const bool is_assignment = absl::StrContains(word, '=');
    const bool is_program = expected_ && !is_assignment;
    if (is_program) {
      expected_ = std::find(kRunners.begin(), kRunners.end(), word) != kRunners.end();
    }
    return is_program;
  }

 private:
  bool expected_ = true;
};

// Splits a line as a shell does. Expands nothing.
std::vector<Word> SplitShellLine(absl::string_view line) {
  std::vector<Word> words;
  std::optional<std::string> word;
  ProgramFinder programs;
  const auto end_word = [&] {
    if (!word) return;
    words.push_back({*word, programs.IsProgram(*word)});
    word.reset();
  };
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word = word.value_or("") + line[++i];
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      word = word.value_or("");
    } else if (quote == 0 && absl::StrContains(" \t\n;|&()<>`", c)) {
      end_word();
      if (absl::StrContains("\n;|&(`", c)) programs.BeginCommand();
    } else {
      word = word.value_or("") + c;
    }
  }
  end_word();
  return words;
}

// Returns true for a shell whose argument `-c` is a line: [bash, -c, LINE].
bool RunsShellLine(const std::vector<std::string>& argv) {
  constexpr std::array<absl::string_view, 5> kShells = {"ash", "bash", "dash", "sh", "zsh"};
  if (argv.size() < 3 || !absl::StartsWith(argv[1], "-") || !absl::EndsWith(argv[1], "c")) {
    return false;
  }
  const std::string name = fs::path(argv[0]).filename().string();
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

std::vector<Word> WordsOf(const std::vector<std::string>& argv) {
  if (RunsShellLine(argv)) return SplitShellLine(argv[2]);
  std::vector<Word> words;
  ProgramFinder programs;
  for (const std::string& text : argv) words.push_back({text, programs.IsProgram(text)});
  return words;
}

class Finder {
 public:
  Finder(const job::RoleSpec& role, const std::string& root)
      : root_(root), folder_(base::JoinPath(root, FolderBelow(root, role).value_or(""))) {}

  std::vector<std::string> Find(const std::vector<Word>& words) {
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      const std::string before = i == 0 ? "" : words[i - 1].text;
      if (words[i].is_program && !absl::StrContains(text, '/')) continue;
      if (before == "-m") {
        const std::string module = absl::StrReplaceAll(text, {{".", "/"}});
        Add(module + ".py", /*folders=*/false);
        Add(module + "/__main__.py", /*folders=*/false);
      }
      const bool folders = absl::StrContains(text, '/') || before == "cd";
      Add(text, folders);
      const size_t sign = text.find('=');
      if (sign != std::string::npos) Add(text.substr(sign + 1), folders);
    }
    return std::move(found_);
  }

 private:
  void Add(const std::string& path, bool folders) {
    if (path.empty() || fs::path(path).is_absolute() || absl::StrContains(path, "://")) return;
    const fs::path whole = (fs::path(folder_) / path).lexically_normal();
    std::string below = whole.lexically_relative(fs::path(root_).lexically_normal()).string();
    if (absl::EndsWith(below, "/")) below.pop_back();
    if (below.empty() || below == ".." || absl::StartsWith(below, "../")) return;
    std::error_code error;
    const fs::file_type type = fs::status(whole, error).type();
    if (type != fs::file_type::regular && !(folders && type == fs::file_type::directory)) return;
    if (std::find(found_.begin(), found_.end(), below) == found_.end()) found_.push_back(below);
  }

  const std::string& root_;
  const std::string folder_;
  std::vector<std::string> found_;
};

}  // namespace

std::optional<std::string> FolderBelow(const std::string& root, const job::RoleSpec& role) {
  const std::string folder = base::AbsolutePath(role.working_dir, root);
  if (role.working_dir.empty() || folder == root) return "";
  if (!absl::StartsWith(folder, root == "/" ? root : absl::StrCat(root, "/"))) return std::nullopt;
  return folder.substr(root == "/" ? 1 : root.size() + 1);
}

std::vector<std::string> FilesNamedBy(const job::RoleSpec& role, const std::string& root) {
  return Finder(role, root).Find(WordsOf(role.command));
}

std::vector<std::string> AbsolutePathsNamedBy(const job::RoleSpec& role, const std::string& root) {
  std::vector<std::string> found;
  if (root == "/") return found;  // every machine has such paths
  for (const Word& word : WordsOf(role.command)) {
    for (const size_t at : {size_t{0}, word.text.find('=') + 1}) {
      const std::string path = word.text.substr(at);
      std::error_code error;
      if (absl::StartsWith(path, absl::StrCat(root, "/")) && fs::exists(path, error)) {
        found.push_back(path);
        break;
      }
    }
  }
  return found;
}

}  // namespace muster::worktree
