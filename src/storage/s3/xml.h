// The small XML documents that S3 answers with.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::storage {

struct XmlElement {
  std::string name;  // without a namespace
  std::string text;  // its own, not that of elements within
  std::vector<XmlElement> children;

  // The text of the first child of that name; "" when there is none.
  absl::string_view Text(absl::string_view child) const;
};

// The root. DataLoss for what is no XML, has a document type, nests deeper than 16 levels or has
// more than 100,000 elements.
absl::StatusOr<XmlElement> ParseXml(absl::string_view text);

// Text for between two tags.
std::string XmlEscape(absl::string_view text);

}  // namespace muster::storage
