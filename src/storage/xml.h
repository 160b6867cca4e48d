// Parses XML: responses of S3 and the configuration of Hadoop.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::storage {

struct XmlElement {
  std::string name;  // without the namespace
  std::string text;  // without that of child elements
  std::vector<XmlElement> children;

  // Returns the text of the first child of that name; "" if there is none.
  absl::string_view Text(absl::string_view child) const;
};

// Returns the root element. Returns DataLoss if the text is not XML, has a document type, nests
// deeper than 16 levels or has more than 100,000 elements.
absl::StatusOr<XmlElement> ParseXml(absl::string_view text);

// Escapes text for use between two tags.
std::string XmlEscape(absl::string_view text);

}  // namespace muster::storage
