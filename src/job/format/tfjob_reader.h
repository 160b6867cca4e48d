// What the readers of all versions of TFJob manifests share: metadata, annotations, names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/diagnostics.h"
#include "codec/map_reader.h"
#include "codec/node.h"
#include "job/job_rules.h"
#include "job/job_spec.h"

namespace muster::job {

// Returns the node with its keys in the spelling of `names`. Keys of v1alpha1 are written in many
// ways: documents have RuntimeId, runtimeId and runtime_id.
codec::Node WithCanonicalKeys(const codec::Node& node, const std::vector<std::string>& names,
                              codec::Diagnostics& diagnostics);

// Reads the metadata and the top-level keys of a manifest. Derived readers read `spec`.
class TfJobReader {
 protected:
  TfJobReader(const codec::Node& document, JobFormat format, codec::Diagnostics& diagnostics);

  // Stores the section unchanged, for the operator.
  void Keep(const char* key, const codec::Node* node);
  // Checks and keeps the section of TensorBoard.
  void ReadTensorboard(const codec::Node& node);
  // Checks and keeps the id, which is part of DNS labels: {job[:40]}-{type}-{RuntimeId}-{index}.
  void ReadRuntimeId(const codec::Node* node);
  // Sets the task that decides how the job ends. REQUIRES: the roles have been read.
  void SetChief(const cluster::TaskId& task, codec::Mark mark);
  // Reads the policies for which Kubeflow's CRD has no fields and which are therefore annotations.
  // REQUIRES: the roles have been read.
  void ReadPolicies();

  codec::MapReader manifest_;
  codec::Diagnostics& diagnostics_;
  const codec::Node* body_ = nullptr;  // `spec`
  JobSpec spec_;
  RolePlaces places_;
  const codec::Node* annotations_ = nullptr;

 private:
  void CheckVolumes(const codec::Node* list, const char* key, const char* type);
  void ReadOldFields(codec::MapReader& reader);
  void ReadStartOrder(codec::MapReader& reader);
  void ReportMisspelledAnnotations();
  void ReadMetadata();
  void ReadAnnotations(const codec::Node& annotations);
  std::optional<int> ReadCount(const codec::Key& key, const codec::Node& value);
  void CheckName(absl::string_view name, codec::Mark mark);
};

}  // namespace muster::job
