#include "job/command.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/text/suggest.h"
#include "job/task_launch.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::Mark;
using codec::Node;

// Returns each word x of the form [a-z_]+ that occurs in `text` as {x}, but not as ${x}.
std::vector<std::string> WordsInBraces(absl::string_view text) {
  std::vector<std::string> words;
  for (size_t open = text.find('{'); open != absl::string_view::npos;
       open = text.find('{', open + 1)) {
    size_t end = open + 1;
    while (end < text.size() && (absl::ascii_islower(text[end]) || text[end] == '_')) ++end;
    const bool closed = end > open + 1 && end < text.size() && text[end] == '}';
    const bool shell_variable = open > 0 && text[open - 1] == '$';
    if (closed && !shell_variable) words.emplace_back(text.substr(open + 1, end - open - 1));
  }
  return words;
}

}  // namespace

void CheckPlaceholders(absl::string_view text, bool has_model_dir, Mark mark,
                       Diagnostics& diagnostics) {
  const std::vector<std::string>& known = CommandPlaceholders();
  for (const std::string& word : WordsInBraces(text)) {
    if (diagnostics.full()) return;
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      if (word == "model_dir" && !has_model_dir) {
        diagnostics.Add(mark, "{model_dir} is used, but the job has no 'model_dir'");
      }
      continue;
    }
    // A word that resembles no placeholder is part of the user's command.
    const std::string nearest = base::NearestWord(word, known);
    if (!nearest.empty()) {
      diagnostics.Add(
          mark, absl::StrCat("unknown placeholder {", word, "} (did you mean {", nearest, "}?)"));
    }
  }
}

void CheckModelDirPlaceholders(absl::string_view text, Mark mark, Diagnostics& diagnostics) {
  const std::vector<std::string>& known = CommandPlaceholders();
  for (const std::string& word : WordsInBraces(text)) {
    const bool is_known = std::find(known.begin(), known.end(), word) != known.end();
    if (word == "job_id" || (!is_known && base::NearestWord(word, {"job_id"}).empty())) continue;
    diagnostics.Add(
        mark, absl::StrCat("'model_dir' may use the placeholder {job_id} only, not {", word, "}"));
  }
}

std::vector<std::string> ReadCommand(codec::MapReader& reader, bool has_model_dir,
                                     Diagnostics& diagnostics) {
  const Node* node = reader.Find("command");
  if (node == nullptr) return {};
  if (node->kind == Node::Kind::kScalar && !absl::StripAsciiWhitespace(node->scalar).empty()) {
    CheckPlaceholders(node->scalar, has_model_dir, node->mark, diagnostics);
    return {"/bin/sh", "-c", node->scalar};
  }
  if (node->kind == Node::Kind::kSequence && !node->items.empty()) {
    for (const Node& word : node->items) {
      CheckPlaceholders(word.scalar, has_model_dir, word.mark, diagnostics);
    }
    return reader.StringList("command");
  }
  diagnostics.Add(node->mark, absl::StrCat("'command' of ", reader.what(),
                                           " must be a line for a shell or a list of words, not ",
                                           Describe(*node)));
  return {};
}

}  // namespace muster::job
