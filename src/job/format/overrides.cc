#include "job/format/overrides.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/text/terminal_text.h"
#include "codec/yaml.h"
#include "job/format/override_path.h"
#include "job/format/pod_template.h"
#include "job/job_rules.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::Mark;
using codec::Node;

constexpr char kArguments[] = "arguments after --";
// No file has as many lines, so marks from here on are free to denote options.
constexpr int kFirstOptionLine = 1 << 30;

Node Text(absl::string_view text, Mark mark) {
  return {.kind = Node::Kind::kScalar, .mark = mark, .scalar = std::string(text), .quoted = true};
}

void SetMarks(Mark mark, Node& node) {
  node.mark = mark;
  for (Node& item : node.items) SetMarks(mark, item);
  for (auto& [key, value] : node.entries) {
    key.mark = mark;
    SetMarks(mark, value);
  }
}

absl::string_view PathOf(absl::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Returns whether words can be appended to a shell line as arguments of its last command: it has no
// operator, comment or further line outside of quotes. Errs on the side of rejection: an operator
// within $(…) is rejected too. A redirection may precede arguments.
bool IsSimpleLine(absl::string_view line) {
  char quote = '\0';
  char before = ' ';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (absl::StrContains("|&;\n", c) || (c == '(' && before != '$') ||
               (c == '#' && absl::ascii_isspace(static_cast<unsigned char>(before)))) {
      return false;
    }
    before = c;
  }
  return quote == '\0';
}

class Applier {
 public:
  Applier(FileFormat format, Node& document, Diagnostics& diagnostics)
      : format_(format), document_(document), diagnostics_(diagnostics) {}

  void Set(const std::string& assignment) {
    const Mark mark = NextMark(absl::StrCat("--set ", PathOf(assignment)));
    if (PathOf(assignment).size() == assignment.size()) {
      diagnostics_.Add(mark, "expected PATH=VALUE, such as train.steps=100");
      return;
    }
    const auto path = ParsePath(PathOf(assignment));
    if (!path.ok()) {
      diagnostics_.Add(mark, std::string(path.status().message()));
      return;
    }
    Node value;
    if (!ReadValue(assignment.substr(PathOf(assignment).size() + 1), mark, value)) return;
    if (format_ == FileFormat::kNative) ExpandRole(*path);
    const auto place = FindOrCreate(*path, mark, document_);
    if (!place.ok()) {
      diagnostics_.Add(mark, std::string(place.status().message()));
      return;
    }
    **place = std::move(value);
    // A mistake in the key itself is one of the option, too.
    SetKeyMark(*path, mark);
  }

  void SetName(const std::string& name) {
    const Mark mark = NextMark("--name");
    if (format_ == FileFormat::kRenderedCluster) {
      diagnostics_.Add(mark, "the file is the config of a rendered cluster, which names no job");
      return;
    }
    Node* map = &document_;
    if (format_ == FileFormat::kManifest) map = &ValueOf(document_, "metadata", mark);
    ValueOf(*map, "name", mark) = Text(name, mark);
  }

  void SetEnv(const std::string& assignment) {
    const std::string key(PathOf(assignment));
    const Mark mark = NextMark(absl::StrCat("--env ", key));
    if (key.size() == assignment.size()) {
      diagnostics_.Add(mark, "expected KEY=VALUE");
      return;
    }
    const Node value = Text(assignment.substr(key.size() + 1), mark);
    if (format_ == FileFormat::kRenderedCluster) {
      diagnostics_.Add(mark,
                       "the config of a rendered cluster has no variables; set them in its image");
    } else if (format_ == FileFormat::kManifest) {
      CheckEnvName(key, mark, diagnostics_);
      ForEachContainer(mark, [&](Node& container) { SetContainerEnv(key, value, container); });
    } else {
      SetNativeEnv(key, value);
    }
  }

  void Append(const std::vector<std::string>& arguments) {
    const Mark mark = NextMark(kArguments);
    if (format_ == FileFormat::kRenderedCluster) {
      diagnostics_.Add(mark, "the config of a rendered cluster has no commands to append them to");
    } else if (format_ == FileFormat::kManifest) {
      ForEachContainer(mark, [&](Node& container) {
        AppendWords(arguments, mark, ValueOf(container, "args", mark));
      });
    } else {
      AppendToCommands(arguments, mark);
    }
  }

 private:
  // Returns a new mark that messages show as `name`.
  Mark NextMark(std::string name) {
    const Mark mark{kFirstOptionLine + count_++, 1};
    diagnostics_.NameMark(mark, std::move(name));
    return mark;
  }

  bool ReadValue(absl::string_view text, Mark mark, Node& value) {
    Diagnostics mistakes([](Mark) { return ""; });
    std::vector<Node> documents = codec::ParseYaml(text, {}, mistakes);
    if (documents.size() > 1) mistakes.Add({}, "several YAML documents; expected one value");
    if (!mistakes.empty()) {
      const std::string all = absl::StrReplaceAll(mistakes.ToStatus().message(), {{"\n", "; "}});
      diagnostics_.Add(mark,
                       absl::StrCat("cannot read the value ", codec::Quoted(text), ": ", all));
      return false;
    }
    if (!documents.empty()) value = std::move(documents.front());
    SetMarks(mark, value);
    return true;
  }

  // `worker: 2` is short for `worker: {replicas: 2}`.
  void ExpandRole(const std::vector<PathStep>& path) {
    if (path.size() < 3 || path[0].key != "roles") return;
    Node* roles = FindValue(document_, "roles");
    Node* role = roles == nullptr ? nullptr : FindValue(*roles, path[1].key);
    if (role == nullptr || !codec::AsInt(*role)) return;
    Node expanded{.kind = Node::Kind::kMap, .mark = role->mark};
    expanded.entries.push_back({{"replicas", role->mark}, *role});
    *role = std::move(expanded);
  }

  // Moves the mark of the key that `path` ends with to `mark`.
  void SetKeyMark(const std::vector<PathStep>& path, Mark mark) {
    if (path.back().is_index) return;
    const std::vector<PathStep> above(path.begin(), path.end() - 1);
    Node* map = above.empty() ? &document_ : *FindOrCreate(above, mark, document_);
    for (auto& [key, value] : map->entries) {
      if (key.name == path.back().key) key.mark = mark;
    }
  }

  // A role's own variable takes precedence over that of the job, so it is replaced too.
  void SetNativeEnv(const std::string& key, const Node& value) {
    const auto set = [&](Node& holder) {
      Node& env = ValueOf(holder, "env", value.mark);
      if (env.kind != Node::Kind::kMap && env.kind != Node::Kind::kNull) return;  // reported later
      ValueOf(env, key, value.mark) = value;
    };
    set(document_);
    Node* roles = FindValue(document_, "roles");
    if (roles == nullptr) return;
    for (auto& [name, role] : roles->entries) {
      const Node* env = role.Find("env");
      if (env != nullptr && env->Find(key) != nullptr) set(role);
    }
  }

  static void SetContainerEnv(const std::string& key, const Node& value, Node& container) {
    Node& env = ValueOf(container, "env", value.mark);
    if (env.kind == Node::Kind::kNull) env.kind = Node::Kind::kSequence;
    std::erase_if(env.items, [&key](const Node& item) {
      const Node* name = item.Find("name");
      return name != nullptr && name->scalar == key;
    });
    Node item{.kind = Node::Kind::kMap, .mark = value.mark};
    item.entries = {{{"name", value.mark}, Text(key, value.mark)}, {{"value", value.mark}, value}};
    env.items.push_back(std::move(item));
  }

  // Calls `change` for the container of every role of a manifest. Warns of roles without one: the
  // operator supplies their program.
  template <typename Change>
  void ForEachContainer(Mark mark, Change change) {
    Node* spec = FindValue(document_, "spec");
    if (spec == nullptr) return;  // reported later
    for (auto& [key, roles] : spec->entries) {
      for (auto& [name, role] : roles.entries) ChangeContainers(mark, name.name, role, change);
      for (Node& role : roles.items) {
        const Node* type = role.Find("tfReplicaType");
        ChangeContainers(mark, type == nullptr ? "MASTER" : type->scalar, role, change);
      }
    }
  }

  template <typename Change>
  void ChangeContainers(Mark mark, const std::string& name, Node& role, Change change) {
    Node* pod = FindValue(role, "template");
    if (pod == nullptr) {
      if (role.Find("IsDefaultPS") != nullptr || role.Find("tfReplicaType") != nullptr) {
        diagnostics_.Warn(
            mark, absl::StrCat(codec::Quoted(name), " has no template, so this does not reach it"));
      }
      return;
    }
    Node* spec = FindValue(*pod, "spec");
    Node* containers = spec == nullptr ? nullptr : FindValue(*spec, "containers");
    if (containers == nullptr) return;
    for (Node& container : containers->items) {
      const Node* own = container.Find("name");
      if (own != nullptr && own->scalar == kTensorflowContainer) change(container);
    }
  }

  void AppendToCommands(const std::vector<std::string>& arguments, Mark mark) {
    bool any = AppendToCommand(arguments, mark, document_);
    if (Node* roles = FindValue(document_, "roles")) {
      for (auto& [name, role] : roles->entries) any |= AppendToCommand(arguments, mark, role);
    }
    if (any || document_.Find("train") == nullptr) return;  // a job without either is reported
    diagnostics_.Add(mark,
                     "the tasks of this job run the built-in trainer, which takes no arguments; "
                     "change its settings with --set train.KEY=VALUE");
  }

  // Appends to the command of the job or of a role. Returns false if it has none.
  bool AppendToCommand(const std::vector<std::string>& arguments, Mark mark, Node& holder) {
    Node* command = FindValue(holder, "command");
    if (command == nullptr) return false;
    if (command->kind == Node::Kind::kSequence) {
      AppendWords(arguments, mark, *command);
    } else if (command->kind == Node::Kind::kScalar) {
      const absl::string_view line = absl::StripTrailingAsciiWhitespace(command->scalar);
      if (!IsSimpleLine(line)) {
        diagnostics_.Add(mark,
                         absl::StrCat("cannot be appended to the command ", codec::Quoted(line),
                                      ", which is more than one simple command; write the command "
                                      "as a list of words, or change it with --set"));
        return true;
      }
      *command = Text(absl::StrCat(line, " ", base::ShellJoin(arguments)), command->mark);
    }
    return true;
  }

  static void AppendWords(const std::vector<std::string>& words, Mark mark, Node& list) {
    if (list.kind == Node::Kind::kNull) list.kind = Node::Kind::kSequence;
    for (const std::string& word : words) list.items.push_back(Text(word, mark));
  }

  const FileFormat format_;
  Node& document_;
  Diagnostics& diagnostics_;
  int count_ = 0;  // marks that were given out
};

}  // namespace

std::vector<std::string> Overrides::Names() const {
  std::vector<std::string> names;
  for (const std::string& one : set) names.push_back(absl::StrCat("--set ", PathOf(one)));
  for (const std::string& one : env) names.push_back(absl::StrCat("--env ", PathOf(one)));
  if (!name.empty()) names.push_back("--name");
  if (!arguments.empty()) names.push_back(kArguments);
  return names;
}

void ApplyOverrides(const Overrides& overrides, FileFormat format, Node& document,
                    Diagnostics& diagnostics) {
  if (document.kind != Node::Kind::kMap) return;  // not a job, which its reader reports
  Applier applier(format, document, diagnostics);
  for (const std::string& one : overrides.set) applier.Set(one);
  if (!overrides.name.empty()) applier.SetName(overrides.name);
  for (const std::string& one : overrides.env) applier.SetEnv(one);
  if (!overrides.arguments.empty()) applier.Append(overrides.arguments);
}

}  // namespace muster::job
