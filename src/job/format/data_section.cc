#include "job/format/data_section.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text/suggest.h"
#include "job/job_rules.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;
using Json = nlohmann::json;

constexpr int64_t kMaxSize = 1'000'000;

const std::vector<std::string>& FeatureTypes() {
  static const auto& kTypes =
      *new std::vector<std::string>{"uint8", "float", "int64", "jpeg", "png"};
  return kTypes;
}

// Reads a feature such as {type: uint8, shape: [28, 28]}.
Json ReadFeatureMap(const Node& value, const std::string& what, Diagnostics& diagnostics) {
  Json result = Json::object();
  MapReader reader(value, what, diagnostics);
  reader.Require("type", "uint8 | float | int64 | jpeg | png");
  const auto type = reader.Choice("type", FeatureTypes());
  const Json shape = ReadSizes(reader, "shape", kMaxSize, diagnostics);
  reader.Finish();
  if (type) result["type"] = *type;
  if (!shape.is_null()) result["shape"] = shape;
  const bool needs_shape = type && *type != "float" && *type != "int64";
  if (needs_shape && value.Find("shape") == nullptr) {
    diagnostics.Add(value.mark, absl::StrCat(what, " lacks 'shape', which ", *type,
                                             " needs, such as [28, 28]"));
  }
  return result;
}

void CheckRecordData(const Node& data, const Json& section, Diagnostics& diagnostics) {
  const Node* features = data.Find("features");
  if (features == nullptr || features->kind != Node::Kind::kMap) {
    diagnostics.Add(features == nullptr ? data.mark : features->mark,
                    "'data' of train needs 'features' with 'format: tfrecord': a map such as "
                    "{image: {type: uint8, shape: [28, 28]}, label: int64}; `muster data inspect` "
                    "shows what the files have");
    return;
  }
  std::vector<std::string> names;
  names.reserve(features->entries.size());
  for (const codec::Entry& entry : features->entries) names.push_back(entry.key.name);
  if (names.size() != 2) {
    diagnostics.Add(features->mark,
                    absl::StrCat("'features' of 'data' of train has ", names.size(),
                                 " entries; expected two: the model's input and the target"));
  }
  const std::string target = section.value("target", "label");
  if (features->Find(target) != nullptr) return;
  const Node* named = data.Find("target");
  diagnostics.Add(named == nullptr ? features->mark : named->mark,
                  absl::StrCat("'features' of 'data' of train has no ", codec::Quoted(target),
                               base::DidYouMean(target, names),
                               "; set 'target' to the feature to be predicted"));
}

// Reports a map in a section whose format is not tfrecord.
void RejectMap(const Node& data, const char* key, absl::string_view expected,
               Diagnostics& diagnostics) {
  const Node* node = data.Find(key);
  if (node == nullptr || node->kind != Node::Kind::kMap) return;
  diagnostics.Add(node->mark, absl::StrCat("'", key, "' of 'data' of train must be ", expected,
                                           "; only 'format: tfrecord' has a map"));
}

}  // namespace

Json ReadSizes(MapReader& reader, const char* key, int64_t max, Diagnostics& diagnostics) {
  constexpr size_t kMaxRank = 8;
  const Node* list = reader.Find(key);
  if (list == nullptr) return {};
  const bool is_list =
      list->kind == Node::Kind::kSequence && !list->items.empty() && list->items.size() <= kMaxRank;
  Json result = Json::array();
  const Node* wrong = is_list ? nullptr : list;
  for (const Node& item : list->items) {
    const auto size = codec::AsInt(item);
    if (!size || *size < 1 || *size > max) wrong = &item;
    if (wrong != nullptr) break;
    result.push_back(*size);
  }
  if (wrong == nullptr) return result;
  diagnostics.Add(wrong->mark,
                  absl::StrCat("'", key, "' of ", reader.what(), " must be a list of 1 to ",
                               kMaxRank, " whole numbers from 1 to ", max, ", not ",
                               wrong == list ? "" : "of ", codec::Describe(*wrong)));
  return {};
}

Json ReadRecordFeatures(const Node& features, Diagnostics& diagnostics) {
  Json result = Json::object();
  MapReader reader(features, "'features' of 'data' of train", diagnostics);
  for (const codec::Entry& entry : features.entries) {
    const std::string& name = entry.key.name;
    const std::string what = absl::StrCat("feature ", codec::Quoted(name), " of 'data' of train");
    const bool is_word = entry.value.kind == Node::Kind::kScalar;
    if (!is_word || entry.value.scalar == "uint8" || entry.value.scalar == "jpeg" ||
        entry.value.scalar == "png") {
      // A type that needs a shape is converted to a map without one, so that ReadFeatureMap()
      // reports the missing shape.
      Node map = entry.value;
      if (is_word) {
        map = Node{.kind = Node::Kind::kMap, .mark = entry.value.mark};
        map.entries.push_back({{"type", entry.value.mark}, entry.value});
      }
      result[name] = ReadFeatureMap(map, what, diagnostics);
    } else if (const auto type = reader.Choice(name, FeatureTypes())) {
      result[name] = {{"type", *type}};
    }
  }
  return result;
}

Json ReadSplitPaths(const Node& paths, absl::string_view working_dir, Diagnostics& diagnostics) {
  Json result = Json::object();
  MapReader reader(paths, "'path' of 'data' of train", diagnostics);
  for (const codec::Entry& entry : paths.entries) {
    const std::string& split = entry.key.name;
    const auto path = reader.String(split);
    if (!path) continue;
    result[split] = ResolveStorage(
        *path, working_dir, absl::StrCat(codec::Quoted(split), " of 'path' of 'data' of train"),
        entry.value.mark, diagnostics);
  }
  return result;
}

void CheckDataSection(const Node& data, const Json& section, Diagnostics& diagnostics) {
  const std::string format = section.value("format", "");
  if (format == "tfrecord") return CheckRecordData(data, section, diagnostics);
  RejectMap(data, "path", "text", diagnostics);
  RejectMap(data, "features", "a whole number", diagnostics);
  const std::string split = section.value("split", "train");
  if (format == "idx" || split == "train" || split == "test") return;
  diagnostics.Add(data.Find("split")->mark,
                  absl::StrCat("'split' of 'data' of train must be train | test with 'format: ",
                               format, "', not text '", split, "'"));
}

}  // namespace muster::job
