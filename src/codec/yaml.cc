#include "codec/yaml.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "codec/text_check.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace muster::codec {
namespace {

// Unwinds yaml-cpp once a diagnostic makes reading on pointless. Never leaves this file.
struct Abandoned {};

Mark ToMark(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// Replaces yaml-cpp's messages, which describe its parser, by messages that name the remedy.
std::string Explain(const std::string& message) {
  static const std::unordered_map<std::string, const char*> explanations = {
      {YAML::ErrorMsg::MAP_VALUE,
       "':' is not expected here; indent with spaces, and quote text that contains ': '"},
      {YAML::ErrorMsg::END_OF_MAP, "expected a key here; check the indentation"},
      {YAML::ErrorMsg::END_OF_SEQ, "expected '- ' here; check the indentation"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "expected ',' or '}' here"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "expected ',' or ']' here"},
      {YAML::ErrorMsg::FLOW_END, "a closing bracket without its opening one"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "text cannot begin with this character; quote it"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, "the alias refers to no earlier anchor (&name)"},
  };
  const auto found = explanations.find(message);
  return absl::StrCat("not valid YAML: ", found == explanations.end() ? message : found->second);
}

bool IsUnclosedQuote(const std::string& message) {
  return message == YAML::ErrorMsg::DOC_IN_SCALAR || message == YAML::ErrorMsg::EOF_IN_SCALAR;
}

// yaml-cpp accepts the end of the text as the end of a quoted scalar. A document end marker on the
// last line, which no scalar may contain, makes it report the unclosed quote.
std::string WithEndMarker(absl::string_view text) {
  return absl::StrCat(text, absl::EndsWith(text, "\n") ? "" : "\n", "...\n");
}

// yaml-cpp keeps every token of a flow collection (`[a, b]`) until it ends, at a cost of hundreds
// of bytes each. Returns true if the text has no more token characters than `limits.nodes` values
// can need.
bool FitsScanner(absl::string_view text, const ParseLimits& limits) {
  constexpr int64_t kTokensPerNode = 5;
  const auto makes_token = [](char c) { return c == '[' || c == '{' || c == ',' || c == ':'; };
  const int64_t tokens = std::count_if(text.begin(), text.end(), makes_token);
  const auto opens = [](char c) { return c == '[' || c == '{'; };
  const int64_t collections = std::count_if(text.begin(), text.end(), opens);
  return collections <= limits.nodes && tokens <= kTokensPerNode * limits.nodes;
}

struct Size {
  int64_t nodes = 0;
  int64_t bytes = 0;
  int height = 0;
};

Size Measure(const Node& node) {
  Size size{.nodes = 1, .bytes = static_cast<int64_t>(node.scalar.size()), .height = 0};
  const auto add = [&size](const Node& child) {
    const Size part = Measure(child);
    size.nodes += part.nodes;
    size.bytes += part.bytes;
    size.height = std::max(size.height, part.height + 1);
  };
  for (const Node& item : node.items) add(item);
  for (const auto& [key, value] : node.entries) {
    size.bytes += static_cast<int64_t>(key.name.size());
    add(value);
  }
  return size;
}

// Builds the tree from yaml-cpp's events, which arrive in document order.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const ParseLimits& limits, Diagnostics& diagnostics)
      : limits_(limits), diagnostics_(diagnostics) {}

  std::vector<Node> TakeDocuments() { return std::move(documents_); }
  // The position of the last complete value.
  Mark last_mark() const { return last_mark_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    anchors_.clear();  // an anchor's scope is its document
    if (++started_ > limits_.documents) {
      Abandon(ToMark(mark),
              absl::StrCat("more than ", limits_.documents, " documents in one file"));
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Finish({.mark = ToMark(mark)}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckTag(mark, tag);
    CheckEscapes(mark, value);
    // yaml-cpp passes the tag "!" for a quoted scalar and "?" for a plain one.
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    Finish({.kind = Node::Kind::kScalar, .mark = ToMark(mark), .scalar = value, .quoted = quoted},
           anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Abandon(ToMark(mark), "an alias inside the value that it names");
    const auto& [node, size] = found->second;
    if (static_cast<int>(frames_.size()) + size.height > limits_.depth) TooDeep(ToMark(mark));
    Charge(size, ToMark(mark));
    Node copy = node;
    copy.mark = ToMark(mark);
    Attach(std::move(copy));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(Node::Kind::kSequence, ToMark(mark), anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(Node::Kind::kMap, ToMark(mark), anchor);
  }
  void OnMapEnd() override {
    Merge(frames_.back());
    Close();
  }

 private:
  // A sequence or map that is still open.
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<Key> key;  // of the next value
    bool merge = false;      // that key is `<<`
    std::unordered_map<std::string, Mark> key_marks;
    std::vector<Node> merged;  // the values of `<<`
  };

  [[noreturn]] void Abandon(Mark mark, std::string message) {
    diagnostics_.Add(mark, std::move(message));
    throw Abandoned{};
  }
  [[noreturn]] void TooDeep(Mark mark) {
    Abandon(mark, absl::StrCat("nested deeper than ", limits_.depth, " levels"));
  }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" || absl::StartsWith(tag, "tag:yaml.org,2002:"))
      return;
    Abandon(ToMark(mark), absl::StrCat("the tag ", Quoted(tag), " is not supported; leave it out"));
  }

  // Escapes can produce what CheckText rejects in the text itself: "\0", and the invalid UTF-8 that
  // yaml-cpp makes of "\N" and "\_". No command, variable or path can contain either.
  void CheckEscapes(const YAML::Mark& mark, const std::string& value) {
    if (value.find('\0') == std::string::npos && base::IsUtf8(value)) return;
    Abandon(ToMark(mark), "an escape in this text produces a character that is not supported");
  }

  void Charge(const Size& size, Mark mark) {
    last_mark_ = mark;
    spent_.nodes += size.nodes;
    spent_.bytes += size.bytes;
    if (spent_.nodes > limits_.nodes) {
      Abandon(mark, absl::StrCat("more than ", limits_.nodes,
                                 " values (an alias counts as often as it is used)"));
    }
    if (spent_.bytes > limits_.bytes) {
      Abandon(mark, absl::StrCat("more than ", base::FormatBytes(limits_.bytes),
                                 " of text (an alias counts as often as it is used)"));
    }
  }

  bool ExpectsKey() const {
    return !frames_.empty() && frames_.back().node.kind == Node::Kind::kMap && !frames_.back().key;
  }

  void Open(Node::Kind kind, Mark mark, YAML::anchor_t anchor) {
    if (ExpectsKey())
      Abandon(mark, "a key must be text, not a list or a map; is a bracket left open?");
    if (static_cast<int>(frames_.size()) >= limits_.depth) TooDeep(mark);
    Charge({.nodes = 1}, mark);
    frames_.push_back({.node = {.kind = kind, .mark = mark}, .anchor = anchor});
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Remember(frame.node, frame.anchor);
    Attach(std::move(frame.node));
  }

  void Finish(Node node, YAML::anchor_t anchor) {
    Charge({.nodes = 1, .bytes = static_cast<int64_t>(node.scalar.size())}, node.mark);
    Remember(node, anchor);
    Attach(std::move(node));
  }

  // Keeps a copy for later aliases, and charges it like an alias: nested anchors would otherwise
  // multiply for free.
  void Remember(const Node& node, YAML::anchor_t anchor) {
    if (anchor == 0) return;
    const Size size = Measure(node);
    Charge(size, node.mark);
    anchors_[anchor] = {node, size};
  }

  void Attach(Node node) {
    if (frames_.empty()) {
      // There may be only comments between two `---`.
      if (node.kind != Node::Kind::kNull) documents_.push_back(std::move(node));
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == Node::Kind::kSequence) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      SetKey(frame, std::move(node));
    } else {
      SetValue(frame, std::move(node));
    }
  }

  void SetKey(Frame& frame, Node node) {
    if (node.kind != Node::Kind::kScalar) {
      Abandon(node.mark, absl::StrCat("a key must be text, not ", Describe(node)));
    }
    frame.merge = node.scalar == "<<" && !node.quoted;
    frame.key = Key{std::move(node.scalar), node.mark};
  }

  void SetValue(Frame& frame, Node node) {
    Key key = *std::exchange(frame.key, std::nullopt);
    // An omitted value takes the position of its key: the scanner is already on the next line.
    if (node.kind == Node::Kind::kNull) node.mark = key.mark;
    const auto [first, added] = frame.key_marks.emplace(key.name, key.mark);
    if (!added) {
      diagnostics_.Add(key.mark, absl::StrCat("the key ", Quoted(key.name), " is already set at ",
                                              first->second.line, ":", first->second.column));
    } else if (frame.merge) {
      frame.merged.push_back(std::move(node));
    } else {
      frame.node.entries.push_back({std::move(key), std::move(node)});
    }
  }

  // Resolves `<<: *defaults` and `<<: [*first, *second]`: keys of the map itself take precedence,
  // then those of the earlier map.
  void Merge(Frame& frame) {
    for (Node& merged : frame.merged) {
      if (merged.kind == Node::Kind::kSequence) {
        for (Node& item : merged.items) MergeMap(frame, std::move(item));
      } else {
        MergeMap(frame, std::move(merged));
      }
    }
  }

  void MergeMap(Frame& frame, Node&& source) {
    if (source.kind != Node::Kind::kMap) {
      Abandon(source.mark,
              absl::StrCat("'<<' takes a map or a list of maps, not ", Describe(source)));
    }
    for (auto& [key, value] : source.entries) {
      if (!frame.key_marks.emplace(key.name, key.mark).second) continue;
      frame.node.entries.push_back({std::move(key), std::move(value)});
    }
  }

  const ParseLimits& limits_;
  Diagnostics& diagnostics_;
  std::vector<Node> documents_;
  int started_ = 0;  // documents, including empty ones
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, std::pair<Node, Size>> anchors_;
  Size spent_;
  Mark last_mark_{1, 1};
};

}  // namespace

std::vector<Node> ParseYaml(absl::string_view text, const ParseLimits& limits,
                            Diagnostics& diagnostics) {
  if (static_cast<int64_t>(text.size()) > limits.bytes) {
    diagnostics.Add({}, absl::StrCat("larger than ", base::FormatBytes(limits.bytes)));
    return {};
  }
  text = WithoutByteOrderMark(text);
  if (!CheckText(text, diagnostics)) return {};
  if (!FitsScanner(text, limits)) {
    diagnostics.Add({}, "too many brackets, commas and colons");
    return {};
  }

  TreeBuilder builder(limits, diagnostics);
  try {
    std::istringstream stream(WithEndMarker(text));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Abandoned&) {
    return {};
  } catch (const YAML::Exception& e) {
    if (IsUnclosedQuote(e.msg)) {
      diagnostics.Add(builder.last_mark(),
                      "quoted text that begins after this position is never closed");
    } else {
      diagnostics.Add(ToMark(e.mark), Explain(e.msg));
    }
    return {};
  } catch (const std::exception& e) {
    diagnostics.Add({}, absl::StrCat("cannot be read as YAML: ", e.what()));
    return {};
  }
  return builder.TakeDocuments();
}

}  // namespace muster::codec
