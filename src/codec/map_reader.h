// Reads a map key by key and reports unknown keys.
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

// A value of the wrong kind adds a diagnostic and reads as absent, so that reading continues and
// finds further mistakes. A null map (`chief:`) reads as an empty one. `node` and `diagnostics`
// must outlive the reader. Call Finish() last.
class MapReader {
 public:
  // `what` is the name of the map in messages: "role 'worker'".
  MapReader(const Node& node, std::string what, Diagnostics& diagnostics);

  // Returns the raw value, or null if absent. Marks the key as known.
  const Node* Find(absl::string_view key);
  // As Find, but adds a diagnostic if the key is absent.
  const Node* Require(absl::string_view key, absl::string_view expected);

  // Accepts any scalar, numbers included, and returns it as written.
  std::optional<std::string> String(absl::string_view key);
  std::optional<int64_t> Int(absl::string_view key, int64_t min, int64_t max);
  std::optional<double> Number(absl::string_view key, double min, double max);
  std::optional<bool> Bool(absl::string_view key);
  // Truncates to milliseconds, the resolution of DurationToString().
  std::optional<absl::Duration> Duration(absl::string_view key);
  std::optional<int64_t> Bytes(absl::string_view key);
  // The value must be one of `choices`; the diagnostic suggests the nearest one.
  std::optional<std::string> Choice(absl::string_view key, const std::vector<std::string>& choices);
  std::vector<std::string> ChoiceList(absl::string_view key,
                                      const std::vector<std::string>& choices);
  std::map<std::string, std::string> StringMap(absl::string_view key);
  std::vector<std::string> StringList(absl::string_view key);

  // Reports every key that was never read, with the nearest known key, or all known keys if none is
  // near.
  void Finish();

  Mark mark() const { return node_.mark; }
  const std::string& what() const { return what_; }

 private:
  // Adds the diagnostic that `key` must be `expected`.
  void Mismatch(absl::string_view key, const Node& value, absl::string_view expected);
  // Returns true if `value` is one of `choices`; else adds a diagnostic.
  bool CheckChoice(absl::string_view key, const Node& value,
                   const std::vector<std::string>& choices);

  const Node& node_;
  std::string what_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
};

}  // namespace muster::codec
