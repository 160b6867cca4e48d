#include "storage/xml.h"

#include <expat.h>

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster::storage {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr int kMaxElements = 100'000;

struct Building {
  XML_Parser parser = nullptr;
  XmlElement root;
  // From the outermost to the innermost open element. An element moves into its parent when it
  // ends.
  std::vector<XmlElement> open;
  int elements = 0;
};

void OnStart(void* user, const XML_Char* name, const XML_Char** /*attributes*/) {
  auto& building = *static_cast<Building*>(user);
  if (building.open.size() >= kMaxDepth || ++building.elements > kMaxElements) {
    XML_StopParser(building.parser, XML_FALSE);
    return;
  }
  const absl::string_view whole = name;
  const size_t colon = whole.rfind(':');
  building.open.push_back(
      {.name = std::string(colon == absl::string_view::npos ? whole : whole.substr(colon + 1))});
}

void OnEnd(void* user, const XML_Char* /*name*/) {
  auto& building = *static_cast<Building*>(user);
  if (building.open.empty()) return;  // the parser was stopped
  XmlElement element = std::move(building.open.back());
  building.open.pop_back();
  (building.open.empty() ? building.root : building.open.back())
      .children.push_back(std::move(element));
}

void OnText(void* user, const XML_Char* text, int size) {
  auto& building = *static_cast<Building*>(user);
  if (!building.open.empty()) building.open.back().text.append(text, static_cast<size_t>(size));
}

// Rejects document types: entities could expand without bound.
void OnDocumentType(void* user, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  XML_StopParser(static_cast<Building*>(user)->parser, XML_FALSE);
}

}  // namespace

absl::string_view XmlElement::Text(absl::string_view child) const {
  for (const XmlElement& element : children) {
    if (element.name == child) return element.text;
  }
  return "";
}

absl::StatusOr<XmlElement> ParseXml(absl::string_view text) {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::DataLossError("the XML is too large");
  }
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  if (parser == nullptr) return absl::ResourceExhaustedError("out of memory while parsing XML");
  Building building{.parser = parser.get()};
  XML_SetUserData(parser.get(), &building);
  XML_SetElementHandler(parser.get(), &OnStart, &OnEnd);
  XML_SetCharacterDataHandler(parser.get(), &OnText);
  XML_SetStartDoctypeDeclHandler(parser.get(), &OnDocumentType);
  const auto result =
      XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), /*isFinal=*/1);
  if (result != XML_STATUS_OK || building.root.children.size() != 1) {
    return absl::DataLossError(
        absl::StrCat("not valid XML (", XML_ErrorString(XML_GetErrorCode(parser.get())), ")"));
  }
  return std::move(building.root.children[0]);
}

std::string XmlEscape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

}  // namespace muster::storage
