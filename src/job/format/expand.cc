#include "job/format/expand.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/shell_expand.h"

namespace muster::job {
namespace {

using base::Tildes;
using codec::Entry;
using codec::Node;

Node* Find(Node& node, absl::string_view key) {
  for (Entry& entry : node.entries) {
    if (entry.key.name == key) return &entry.value;
  }
  return nullptr;
}

class Expander {
 public:
  Expander(const base::Variables& variables, codec::Diagnostics& diagnostics)
      : variables_(variables), diagnostics_(diagnostics) {}

  void Job(Node& job) {
    Value(Find(job, "model_dir"), "'model_dir'");
    Process(job);
    if (Node* roles = Find(job, "roles")) {
      for (Entry& role : roles->entries) Process(role.value);
    }
    if (Node* train = Find(job, "train")) Train(*train);
    if (Node* hosts = Find(job, "hosts")) {
      for (Node& host : hosts->items) Value(Find(host, "key"), "'key' of a host");
    }
  }

 private:
  // The job, or one role.
  void Process(Node& node) {
    Value(Find(node, "working_dir"), "'working_dir'");
    if (Node* env = Find(node, "env")) {
      for (Entry& entry : env->entries) {
        Value(&entry.value, codec::Quoted(entry.key.name), Tildes::kEachColon);
      }
    }
    if (const Node* command = node.Find("command")) WarnOfWords(*command);
  }

  void Train(Node& train) {
    Value(Find(train, "model"), "'model' of train");
    Value(Find(train, "warm_start"), "'warm_start' of train");
    Node* data = Find(train, "data");
    Node* path = data == nullptr ? nullptr : Find(*data, "path");
    Value(path, "'path' of 'data' of train");
    if (path == nullptr) return;
    for (Entry& split : path->entries) {
      Value(&split.value,
            absl::StrCat(codec::Quoted(split.key.name), " of 'path' of 'data' of train"));
    }
  }

  void Value(Node* node, absl::string_view what, Tildes tildes = Tildes::kFirst) {
    if (node == nullptr || node->kind != Node::Kind::kScalar) return;
    const auto expanded = base::ShellExpand(node->scalar, tildes, variables_);
    if (!expanded.ok()) {
      diagnostics_.Add(node->mark, absl::StrCat(what, " ", expanded.status().message()));
      return;
    }
    if (*expanded == node->scalar) return;
    node->scalar = *expanded;
    node->quoted = true;  // the value of a variable is text, whatever it looks like
  }

  void WarnOfWords(const Node& command) {
    absl::string_view previous;
    for (const Node& word : command.items) {
      const bool for_a_shell = std::exchange(previous, word.scalar) == "-c";
      if (for_a_shell || (word.scalar != "~" && !absl::StartsWith(word.scalar, "~/"))) continue;
      diagnostics_.Warn(word.mark,
                        absl::StrCat(codec::Quoted(word.scalar),
                                     " is passed on as it is: no shell reads the words of a list; ",
                                     "write the command as one line, or a path without '~'"));
    }
  }

  const base::Variables& variables_;
  codec::Diagnostics& diagnostics_;
};

}  // namespace

void ExpandPathsAndEnv(const base::Variables& variables, Node& document,
                       codec::Diagnostics& diagnostics) {
  Expander(variables, diagnostics).Job(document);
}

}  // namespace muster::job
