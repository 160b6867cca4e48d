// Reads a map key by key, and knows afterwards which keys nobody asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "codec/diagnostics.h"
#include "codec/node.h"

namespace muster::codec {

// A value of the wrong kind is a diagnostic and reads as absent, so that reading goes on and finds
// the next mistake. A map that is null (`chief:`) reads as an empty one. `node` and `diagnostics`
// must outlive the reader. Call Finish() last.
class MapReader {
 public:
  // `what` names the map in messages: "role 'worker'".
  MapReader(const Node& node, std::string what, Diagnostics& diagnostics);

  // The raw value; null when absent. The key counts as known from now on.
  const Node* Find(absl::string_view key);
  // As Find, and a diagnostic when it is absent.
  const Node* Require(absl::string_view key, absl::string_view expected);

  // Any scalar, as it is written: a number too.
  std::optional<std::string> String(absl::string_view key);
  std::optional<int64_t> Int(absl::string_view key, int64_t min, int64_t max);
  std::optional<double> Number(absl::string_view key, double min, double max);
  std::optional<bool> Bool(absl::string_view key);
  // In whole milliseconds, which FormatDuration keeps.
  std::optional<absl::Duration> Duration(absl::string_view key);
  std::optional<int64_t> Bytes(absl::string_view key);
  // One of `choices`, exactly; else the nearest is named.
  std::optional<std::string> Choice(absl::string_view key, const std::vector<std::string>& choices);
  std::vector<std::string> ChoiceList(absl::string_view key,
                                      const std::vector<std::string>& choices);
  std::map<std::string, std::string> StringMap(absl::string_view key);
  std::vector<std::string> StringList(absl::string_view key);

  // Reports every key that was not asked for, with the nearest known one, or all of them when none
  // is near.
  void Finish();

  Mark mark() const { return node_.mark; }
  const std::string& what() const { return what_; }

 private:
  // Reports that `key` must be `expected`, and is not.
  void Mismatch(absl::string_view key, const Node& value, absl::string_view expected);
  // True when `value`, or an item of it, is one of `choices`; else a diagnostic.
  bool CheckChoice(absl::string_view key, const Node& value,
                   const std::vector<std::string>& choices);

  const Node& node_;
  std::string what_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
};

}  // namespace muster::codec
