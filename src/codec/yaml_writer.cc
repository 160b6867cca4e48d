#include "codec/yaml_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster::codec {
namespace {

using Json = nlohmann::ordered_json;

// Returns true for words that some YAML version reads as a boolean or null.
bool IsReserved(absl::string_view text) {
  for (const char* word : {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}) {
    if (absl::EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

// Returns true if the text needs no quotes: it starts with a letter or a slash, and has no
// character that is special in YAML.
bool IsPlain(absl::string_view text) {
  if (text.empty() || IsReserved(text)) return false;
  if (!absl::ascii_isalpha(static_cast<unsigned char>(text.front())) && text.front() != '/') {
    return false;
  }
  return text.back() != ':' && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::string_view("-_./:+=@").find(c) != absl::string_view::npos;
         });
}

// Returns true if a literal block preserves the text. A leading blank would be read as indentation,
// and control characters are not allowed.
bool FitsBlock(absl::string_view text) {
  return absl::StrContains(text, '\n') && text.front() != ' ' && text.front() != '\n' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
         });
}

// The parts of a value that the writer distinguishes, for JSON and for parsed text.
const std::string* TextOf(const Json& value) {
  return value.is_string() ? &value.get_ref<const std::string&>() : nullptr;
}
bool IsFullMap(const Json& value) { return value.is_object() && !value.empty(); }
bool IsFullList(const Json& value) { return value.is_array() && !value.empty(); }
std::string OtherScalar(const Json& value) { return value.dump(); }  // {} and [] too
const Json& ItemsOf(const Json& list) { return list; }

// A number or a boolean is not text: it stays as the user wrote it, so that 1.10 does not become
// 1.1.
const std::string* TextOf(const Node& node) {
  if (node.kind != Node::Kind::kScalar || AsBool(node) || AsNumber(node)) return nullptr;
  return &node.scalar;
}
bool IsFullMap(const Node& node) { return node.kind == Node::Kind::kMap && !node.entries.empty(); }
bool IsFullList(const Node& node) {
  return node.kind == Node::Kind::kSequence && !node.items.empty();
}
std::string OtherScalar(const Node& node) {
  if (node.kind == Node::Kind::kScalar) return node.scalar;
  return node.kind == Node::Kind::kMap ? "{}" : node.kind == Node::Kind::kNull ? "null" : "[]";
}
const std::vector<Node>& ItemsOf(const Node& list) { return list.items; }

class Writer {
 public:
  std::string Take() && { return std::move(out_); }

  // Writes a value after "key:", after "-", or alone.
  template <typename T>
  void Value(const T& value, size_t indent, bool in_sequence) {
    const std::string* text = TextOf(value);
    if (IsFullMap(value)) {
      Map(value, indent, in_sequence);
    } else if (IsFullList(value)) {
      Sequence(value, indent, in_sequence);
    } else if (text != nullptr && FitsBlock(*text)) {
      Block(*text, indent);
    } else {
      absl::StrAppend(&out_, " ", text != nullptr ? Word(*text) : OtherScalar(value), "\n");
    }
  }

 private:
  static std::string Word(const std::string& text) {
    if (IsPlain(text)) return text;
    const std::string quoted =
        Json(text).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
    return absl::StrReplaceAll(quoted, {{"\x7f", "\\u007f"}});
  }

  // In a sequence, the first entry goes on the line of the dash.
  void Map(const Json& map, size_t indent, bool in_sequence) {
    Begin(in_sequence);
    for (const auto& [key, value] : map.items()) MapEntry(key, value, indent, in_sequence);
  }
  void Map(const Node& map, size_t indent, bool in_sequence) {
    Begin(in_sequence);
    for (const auto& [key, value] : map.entries) MapEntry(key.name, value, indent, in_sequence);
  }

  template <typename T>
  void MapEntry(const std::string& key, const T& value, size_t indent, bool& on_line) {
    Indent(indent, on_line);
    absl::StrAppend(&out_, Word(key), ":");
    Value(value, indent + 2, false);
  }

  template <typename T>
  void Sequence(const T& list, size_t indent, bool in_sequence) {
    Begin(in_sequence);
    for (const auto& item : ItemsOf(list)) {
      Indent(indent, in_sequence);
      out_.push_back('-');
      Value(item, indent + 2, true);
    }
  }

  void Begin(bool in_sequence) {
    if (!in_sequence && !out_.empty()) out_.push_back('\n');
  }
  // Clears `on_line`: only the first entry can share a line.
  void Indent(size_t indent, bool& on_line) {
    out_.append(std::exchange(on_line, false) ? 1 : indent, ' ');
  }

  void Block(absl::string_view text, size_t indent) {
    const bool ends = text.back() == '\n';
    const bool more = absl::EndsWith(text, "\n\n");
    absl::StrAppend(&out_, " |", more ? "+" : ends ? "" : "-", "\n");
    if (ends) text.remove_suffix(1);
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (!line.empty()) out_.append(indent, ' ');
      absl::StrAppend(&out_, line, "\n");
    }
  }

  std::string out_;
};

template <typename T>
std::string Write(const T& value) {
  Writer writer;
  writer.Value(value, 0, false);
  std::string text = std::move(writer).Take();
  if (!text.empty() && text.front() == ' ') text.erase(0, 1);  // a scalar alone
  return text;
}

template <typename T>
std::string WriteDocuments(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) absl::StrAppend(&text, text.empty() ? "" : "---\n", Write(value));
  return text;
}

}  // namespace

std::string ToYaml(const Json& value) { return Write(value); }
std::string ToYaml(const Node& node) { return Write(node); }

std::string ToYamlDocuments(const std::vector<Json>& values) { return WriteDocuments(values); }
std::string ToYamlDocuments(const std::vector<Node>& nodes) { return WriteDocuments(nodes); }

}  // namespace muster::codec
