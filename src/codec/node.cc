#include "codec/node.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::codec {
namespace {

bool IsPlain(const Node& node) { return node.kind == Node::Kind::kScalar && !node.quoted; }

bool ConsumeSign(absl::string_view& text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  return negative;
}

size_t CountDigits(absl::string_view text) {
  size_t count = 0;
  while (count < text.size() && absl::ascii_isdigit(text[count])) ++count;
  return count;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool IsDecimal(absl::string_view text) {
  ConsumeSign(text);
  const size_t whole = CountDigits(text);
  text.remove_prefix(whole);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const size_t fraction = CountDigits(text);
    if (whole + fraction == 0) return false;
    text.remove_prefix(fraction);
  } else if (whole == 0) {
    return false;
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  ConsumeSign(text);
  return !text.empty() && CountDigits(text) == text.size();
}

// Parses 0x1f and 0o17. Returns nullopt for anything else and on overflow.
std::optional<int64_t> PrefixedInt(absl::string_view text) {
  if (text.size() < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'o')) return std::nullopt;
  const int base = text[1] == 'x' ? 16 : 8;
  int64_t value = 0;
  for (const char c : text.substr(2)) {
    if (!absl::ascii_isxdigit(c)) return std::nullopt;
    const int digit = absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10;
    if (digit >= base || value > (INT64_MAX - digit) / base) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

}  // namespace

const Node* Node::Find(absl::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key.name == key) return &entry.value;
  }
  return nullptr;
}

std::optional<bool> AsBool(const Node& node) {
  if (!IsPlain(node)) return std::nullopt;
  const std::string& text = node.scalar;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::optional<int64_t> AsInt(const Node& node) {
  if (!IsPlain(node)) return std::nullopt;
  if (const auto prefixed = PrefixedInt(node.scalar)) return prefixed;
  if (!IsDecimal(node.scalar)) return std::nullopt;
  if (int64_t value = 0; absl::SimpleAtoi(node.scalar, &value)) return value;
  // Beyond 2^53 a double cannot represent every integer.
  constexpr double kExact = 9007199254740992.0;
  const auto number = AsNumber(node);
  if (!number || std::abs(*number) > kExact || std::trunc(*number) != *number) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> AsNumber(const Node& node) {
  if (!IsPlain(node)) return std::nullopt;
  if (const auto prefixed = PrefixedInt(node.scalar)) return static_cast<double>(*prefixed);
  double value = 0;
  if (!IsDecimal(node.scalar) || !absl::SimpleAtod(node.scalar, &value)) return std::nullopt;
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::string Describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kScalar:
      break;
  }
  if (AsBool(node)) return node.scalar;
  const std::string quoted = Quoted(node.scalar);
  if (AsNumber(node)) return absl::StrCat("the number ", quoted.substr(1, quoted.size() - 2));
  return absl::StrCat("text ", quoted);
}

nlohmann::json ToJson(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kSequence: {
      nlohmann::json list = nlohmann::json::array();
      for (const Node& item : node.items) list.push_back(ToJson(item));
      return list;
    }
    case Node::Kind::kMap: {
      nlohmann::json object = nlohmann::json::object();
      for (const auto& [key, value] : node.entries) object[key.name] = ToJson(value);
      return object;
    }
    case Node::Kind::kScalar:
      break;
  }
  if (const auto boolean = AsBool(node)) return *boolean;
  // "2.0" stays a floating-point number: JSON and the readers of manifests distinguish the two.
  const bool fraction = node.scalar.find_first_of(".eE") != std::string::npos;
  const bool prefixed = PrefixedInt(node.scalar).has_value();
  if (const auto integer = AsInt(node); integer && (prefixed || !fraction)) return *integer;
  if (const auto number = AsNumber(node)) return *number;
  return node.scalar;
}

}  // namespace muster::codec
