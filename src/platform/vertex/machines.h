// Machine types of Vertex AI and the legacy names of Cloud ML Engine. docs/vertex.md has the same
// table.
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
  int count = 0;            // number of accelerators
  bool operator==(const Machine&) const = default;
};

// Parses a legacy name such as "standard_gpu", or a machine type with optional accelerators:
// "n1-standard-8+NVIDIA_TESLA_T4:2". Returns InvalidArgument with the known names if the text is
// malformed. Vertex AI itself checks that the type exists.
absl::StatusOr<Machine> ParseMachine(absl::string_view name);

// The inverse: returns "n1-standard-8", "n1-standard-8+NVIDIA_TESLA_T4:2".
std::string ToString(const Machine& machine);

// A predefined cluster shape.
struct ScaleTier {
  std::string name;
  std::string master, worker, parameter_server;  // machine names; "": the tier has none of the kind
  int workers = 0, parameter_servers = 0;        // maximum
  bool custom = false;                           // the user chooses the machines
};

inline constexpr char kCustomTier[] = "CUSTOM";
inline constexpr absl::string_view kDefaultTier = "BASIC_GPU";
// Machines of tier CUSTOM that the user leaves unspecified.
inline constexpr char kDefaultMaster[] = "standard_gpu";
inline constexpr char kDefaultWorker[] = "standard_gpu";
inline constexpr char kDefaultParameterServer[] = "large_model";

// Returns InvalidArgument for an unknown tier, or one that Vertex AI no longer offers.
absl::StatusOr<ScaleTier> FindTier(absl::string_view name);

inline constexpr char kDefaultRegion[] = "us-central1";
// Returns InvalidArgument with the known regions if `region` is malformed.
absl::Status CheckRegion(absl::string_view region);
// Returns a warning if `region` is not a known one; Vertex AI may offer it nevertheless.
std::optional<std::string> RegionWarning(absl::string_view region);

// Returns the legacy names in the order of the table.
std::vector<std::string> OldMachineNames();

}  // namespace muster::vertex
