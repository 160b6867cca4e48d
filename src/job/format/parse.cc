#include "job/format/parse.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codec/diagnostics.h"
#include "codec/object_nodes.h"
#include "codec/yaml.h"
#include "codec/yaml_writer.h"
#include "job/format/native_format.h"
#include "job/format/rendered_cluster_format.h"
#include "job/format/tfjob_format.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::Node;

// The versions of TFJob, and how each is read.
struct ManifestVersion {
  const char* version;
  const char* kind;
  JobSpec (*read)(const Node& document, Diagnostics& diagnostics);
};
constexpr ManifestVersion kManifestVersions[] = {
    {"kubeflow.org/v1", "TFJob", ReadTfJobV1},
    {"kubeflow.org/v1beta2", "TFJob", ReadTfJobV1Beta},
    {"kubeflow.org/v1beta1", "TFJob", ReadTfJobV1Beta},
    {"kubeflow.org/v1alpha2", "TFJob", ReadTfJobV1Beta},
    {"kubeflow.org/v1alpha1", "TFJob", ReadTfJobV1Alpha1},
    {"tensorflow.org/v1alpha1", "TfJob", ReadTfJobV1Alpha1},
    {"mlkube.io/v1beta1", "TfJob", ReadTfJobV1Alpha1},  // its first name
};

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
  std::string known;
  for (const ManifestVersion& one : kManifestVersions) {
    if (version == one.version && kind == one.kind) return one.read(document, diagnostics);
    absl::StrAppend(&known, known.empty() ? "" : ", ", one.kind, " of ", one.version);
  }
  diagnostics.Add(document.mark, absl::StrCat("kind ", codec::Quoted(kind), " of apiVersion ",
                                              codec::Quoted(version),
                                              " is not supported; expected one of: ", known));
  return {};
}

// Applies the overrides to the document that describes the job, if there is one.
void Override(const Overrides& overrides, std::vector<Node>& documents, Diagnostics& diagnostics) {
  if (documents.empty()) return;  // reported later
  const auto job = std::find_if(documents.begin(), documents.end(), IsTfJob);
  Node& document = job != documents.end() ? *job : documents.front();
  const FileFormat format = IsManifest(document)          ? FileFormat::kManifest
                            : IsRenderedCluster(document) ? FileFormat::kRenderedCluster
                                                          : FileFormat::kNative;
  ApplyOverrides(overrides, format, document, diagnostics);
}

// A manifest may contain other objects beside the job. They are ignored here; kubectl applies them.
JobSpec ReadManifests(const std::vector<Node>& documents, Diagnostics& diagnostics) {
  const Node* job = nullptr;
  for (const Node& document : documents) {
    if (!IsTfJob(document)) continue;
    if (job != nullptr) {
      diagnostics.Add(document.mark, absl::StrCat("a second TFJob; the first is at line ",
                                                  job->mark.line, ": expected one per file"));
      return {};
    }
    job = &document;
  }
  return ReadManifest(job != nullptr ? *job : documents.front(), diagnostics);
}

JobSpec ReadDocuments(const std::vector<Node>& documents, const ParseJobOptions& options,
                      Diagnostics& diagnostics) {
  if (documents.empty()) {
    diagnostics.Add({}, "the file has no job; expected at least 'name' and 'roles'");
    return {};
  }
  for (const Node& document : documents) {
    if (IsManifest(document)) return ReadManifests(documents, diagnostics);
  }
  if (documents.size() > 1) {
    diagnostics.Add(documents[1].mark, "a second document; expected one job per file");
    return {};
  }
  const Node& document = documents.front();
  if (IsRenderedCluster(document)) return ReadRenderedCluster(document, diagnostics);
  return ReadNativeJob(document, options, diagnostics);
}

}  // namespace

absl::StatusOr<JobSpec> ParseJob(absl::string_view text, const ParseJobOptions& options) {
  Diagnostics diagnostics(options.file_name);
  std::vector<Node> documents = codec::ParseYaml(text, {.bytes = kMaxJobFileBytes}, diagnostics);
  if (documents.empty() && !diagnostics.empty()) return diagnostics.ToStatus();
  if (!options.overrides.empty()) Override(options.overrides, documents, diagnostics);
  JobSpec spec = ReadDocuments(documents, options, diagnostics);
  if (options.warnings != nullptr) *options.warnings = diagnostics.Warnings();
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  if (options.effective != nullptr) {
    *options.effective =
        options.overrides.empty() ? std::string(text) : codec::ToYamlDocuments(documents);
  }
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

}  // namespace muster::job
