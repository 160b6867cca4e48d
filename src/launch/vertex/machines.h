// Which machines Vertex AI has, and what the names of its predecessor stand for there.
// docs/vertex.md has the same table for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::vertex {

struct Machine {
  std::string type;         // "n1-standard-8"
  std::string accelerator;  // "NVIDIA_TESLA_T4"; "": none
  int count = 0;            // of accelerators
  bool operator==(const Machine&) const = default;
};

// "standard_gpu" and the like, or a type of Vertex AI, to which accelerators may be added:
// "n1-standard-8+NVIDIA_TESLA_T4:2". InvalidArgument, for what cannot be one, says which there are;
// whether there is one of that name Vertex AI tells.
absl::StatusOr<Machine> ParseMachine(absl::string_view name);

// A cluster of a fixed make.
struct ScaleTier {
  std::string name;
  std::string master, worker, parameter_server;  // names of machines; "": it has none of the kind
  int workers = 0, parameter_servers = 0;        // at most
  bool custom = false;                           // the user says which machines
};

inline constexpr char kCustomTier[] = "CUSTOM";
inline constexpr absl::string_view kDefaultTier = "BASIC_GPU";
// What a tier CUSTOM has of which the user says nothing.
inline constexpr char kDefaultWorker[] = "standard_gpu";
inline constexpr char kDefaultParameterServer[] = "large_model";

// InvalidArgument for one that is not known, or that Vertex AI has no more.
absl::StatusOr<ScaleTier> FindTier(absl::string_view name);

inline constexpr char kDefaultRegion[] = "us-central1";
// InvalidArgument, for what cannot be the name of one, lists the regions that are known.
absl::Status CheckRegion(absl::string_view region);
// Of one that is not among these, what there is to say; Vertex AI may have it all the same.
std::optional<std::string> DoubtsAbout(absl::string_view region);

// The old names, in the order of the table.
std::vector<std::string> OldMachineNames();

}  // namespace muster::vertex
