#include "job/parse.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codec/diagnostics.h"
#include "codec/object_nodes.h"
#include "codec/yaml.h"
#include "job/native_format.h"
#include "job/rendered_cluster_format.h"
#include "job/tfjob_format.h"

namespace muster {
namespace {

using codec::Diagnostics;
using codec::Node;

constexpr char kKnownManifests[] =
    "kind TFJob of apiVersion kubeflow.org/v1, or kind TfJob of tensorflow.org/v1alpha1";

std::string TextOf(const Node& document, absl::string_view key) {
  const Node* node = document.Find(key);
  return node == nullptr ? "" : node->scalar;
}

bool IsManifest(const Node& document) {
  return document.Find("apiVersion") != nullptr || document.Find("kind") != nullptr;
}

bool IsTfJob(const Node& document) {
  return absl::EqualsIgnoreCase(TextOf(document, "kind"), "TFJob");
}

JobSpec ReadManifest(const Node& document, Diagnostics& diagnostics) {
  const std::string version = TextOf(document, "apiVersion");
  const std::string kind = TextOf(document, "kind");
  if (kind == "TFJob" && version == "kubeflow.org/v1") return ReadTfJobV1(document, diagnostics);
  if (kind == "TfJob" && version == "tensorflow.org/v1alpha1") {
    return ReadTfJobV1Alpha1(document, diagnostics);
  }
  diagnostics.Add(document.mark, absl::StrCat("kind ", codec::Quoted(kind), " of apiVersion ",
                                              codec::Quoted(version), " is not known; expected ",
                                              kKnownManifests));
  return {};
}

// A manifest may hold other objects beside the job: they are for kubectl.
JobSpec ReadManifests(const std::vector<Node>& documents, Diagnostics& diagnostics) {
  const Node* job = nullptr;
  for (const Node& document : documents) {
    if (!IsTfJob(document)) continue;
    if (job != nullptr) {
      diagnostics.Add(document.mark, absl::StrCat("a second TFJob; the first is at line ",
                                                  job->mark.line, ": expected one a file"));
      return {};
    }
    job = &document;
  }
  return ReadManifest(job != nullptr ? *job : documents.front(), diagnostics);
}

JobSpec ReadDocuments(const std::vector<Node>& documents, const ParseJobOptions& options,
                      Diagnostics& diagnostics) {
  if (documents.empty()) {
    diagnostics.Add({}, "there is no job in the file; expected at least 'name' and 'roles'");
    return {};
  }
  for (const Node& document : documents) {
    if (IsManifest(document)) return ReadManifests(documents, diagnostics);
  }
  if (documents.size() > 1) {
    diagnostics.Add(documents[1].mark, "a second document; expected one job a file");
    return {};
  }
  const Node& document = documents.front();
  if (IsRenderedCluster(document)) return ReadRenderedCluster(document, diagnostics);
  return ReadNativeJob(document, options, diagnostics);
}

}  // namespace

absl::StatusOr<JobSpec> ParseJob(absl::string_view text, const ParseJobOptions& options) {
  Diagnostics diagnostics(options.file_name);
  const std::vector<Node> documents =
      codec::ParseYaml(text, {.bytes = kMaxJobFileBytes}, diagnostics);
  if (documents.empty() && !diagnostics.empty()) return diagnostics.ToStatus();
  JobSpec spec = ReadDocuments(documents, options, diagnostics);
  if (options.warnings != nullptr) *options.warnings = diagnostics.Warnings();
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return spec;
}

absl::StatusOr<JobSpec> ParseTfJobObject(const nlohmann::json& object,
                                         std::vector<std::string>* warnings) {
  codec::ObjectNodes nodes(object);
  Diagnostics diagnostics([&nodes](codec::Mark mark) { return nodes.PathOf(mark); });
  const Node document = nodes.Build({}, diagnostics);
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  JobSpec spec = ReadManifest(document, diagnostics);
  if (warnings != nullptr) *warnings = diagnostics.Warnings();
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return spec;
}

}  // namespace muster
