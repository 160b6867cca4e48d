#include "codec/yaml_writer.h"

#include <algorithm>

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

class Writer {
 public:
  std::string Take() && { return std::move(out_); }

  // Writes a value after "key:", after "-", or alone.
  void Value(const Json& value, size_t indent, bool in_sequence) {
    if (value.is_object() && !value.empty()) {
      Map(value, indent, in_sequence);
    } else if (value.is_array() && !value.empty()) {
      Sequence(value, indent, in_sequence);
    } else if (value.is_string() && FitsBlock(value.get_ref<const std::string&>())) {
      Block(value.get_ref<const std::string&>(), indent);
    } else {
      absl::StrAppend(&out_, " ", Scalar(value), "\n");
    }
  }

 private:
  static std::string Quoted(const std::string& text) {
    const std::string quoted =
        Json(text).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
    return absl::StrReplaceAll(quoted, {{"\x7f", "\\u007f"}});
  }
  static std::string Scalar(const Json& value) {
    if (!value.is_string()) return value.dump();  // {} and [] too
    const auto& text = value.get_ref<const std::string&>();
    return IsPlain(text) ? text : Quoted(text);
  }

  // In a sequence, the first entry goes on the line of the dash.
  void Map(const Json& map, size_t indent, bool in_sequence) {
    bool on_line = in_sequence;
    if (!in_sequence && !out_.empty()) out_.push_back('\n');
    for (const auto& [key, value] : map.items()) {
      out_.append(on_line ? 1 : indent, ' ');
      on_line = false;
      absl::StrAppend(&out_, IsPlain(key) ? key : Quoted(key), ":");
      Value(value, indent + 2, false);
    }
  }

  void Sequence(const Json& list, size_t indent, bool in_sequence) {
    bool on_line = in_sequence;
    if (!in_sequence && !out_.empty()) out_.push_back('\n');
    for (const Json& item : list) {
      out_.append(on_line ? 1 : indent, ' ');
      on_line = false;
      out_.push_back('-');
      Value(item, indent + 2, true);
    }
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

}  // namespace

std::string ToYaml(const Json& value) {
  Writer writer;
  writer.Value(value, 0, false);
  std::string text = std::move(writer).Take();
  if (!text.empty() && text.front() == ' ') text.erase(0, 1);  // a scalar alone
  return text;
}

std::string ToYamlDocuments(const std::vector<Json>& values) {
  std::string text;
  for (const Json& value : values)
    absl::StrAppend(&text, text.empty() ? "" : "---\n", ToYaml(value));
  return text;
}

}  // namespace muster::codec
