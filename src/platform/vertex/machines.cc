#include "platform/vertex/machines.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"

namespace muster::vertex {
namespace {

struct Row {
  absl::string_view name;
  absl::string_view type;
  absl::string_view accelerator;
  int count;
};

constexpr absl::string_view kT4 = "NVIDIA_TESLA_T4";
constexpr absl::string_view kP100 = "NVIDIA_TESLA_P100";
constexpr absl::string_view kV100 = "NVIDIA_TESLA_V100";

// The K80 is discontinued; the T4, the smallest GPU offered, replaces it. An N1 machine takes at
// most four of them. The smallest n1-highcpu for training has 16 CPUs.
constexpr std::array kOldNames = {
    Row{"standard", "n1-standard-4", "", 0},
    Row{"large_model", "n1-highmem-8", "", 0},
    Row{"complex_model_s", "n1-highcpu-16", "", 0},
    Row{"complex_model_m", "n1-highcpu-16", "", 0},
    Row{"complex_model_l", "n1-highcpu-32", "", 0},
    Row{"standard_gpu", "n1-standard-8", kT4, 1},
    Row{"complex_model_m_gpu", "n1-standard-16", kT4, 4},
    Row{"complex_model_l_gpu", "n1-standard-32", kT4, 4},
    Row{"standard_p100", "n1-standard-8", kP100, 1},
    Row{"complex_model_m_p100", "n1-standard-16", kP100, 4},
    Row{"standard_v100", "n1-standard-8", kV100, 1},
    Row{"large_model_v100", "n1-highmem-8", kV100, 1},
    Row{"complex_model_m_v100", "n1-standard-16", kV100, 4},
    Row{"complex_model_l_v100", "n1-standard-32", kV100, 8},
};

// Machines with built-in accelerators, which a request must list nevertheless.
constexpr std::array kAccelerated = {
    Row{"", "a2-highgpu-1g", "NVIDIA_TESLA_A100", 1},
    Row{"", "a2-highgpu-2g", "NVIDIA_TESLA_A100", 2},
    Row{"", "a2-highgpu-4g", "NVIDIA_TESLA_A100", 4},
    Row{"", "a2-highgpu-8g", "NVIDIA_TESLA_A100", 8},
    Row{"", "a2-megagpu-16g", "NVIDIA_TESLA_A100", 16},
    Row{"", "a2-ultragpu-1g", "NVIDIA_A100_80GB", 1},
    Row{"", "a2-ultragpu-2g", "NVIDIA_A100_80GB", 2},
    Row{"", "a2-ultragpu-4g", "NVIDIA_A100_80GB", 4},
    Row{"", "a2-ultragpu-8g", "NVIDIA_A100_80GB", 8},
    Row{"", "a3-highgpu-8g", "NVIDIA_H100_80GB", 8},
    Row{"", "g2-standard-4", "NVIDIA_L4", 1},
    Row{"", "g2-standard-8", "NVIDIA_L4", 1},
    Row{"", "g2-standard-12", "NVIDIA_L4", 1},
    Row{"", "g2-standard-16", "NVIDIA_L4", 1},
    Row{"", "g2-standard-24", "NVIDIA_L4", 2},
    Row{"", "g2-standard-32", "NVIDIA_L4", 1},
    Row{"", "g2-standard-48", "NVIDIA_L4", 4},
    Row{"", "g2-standard-96", "NVIDIA_L4", 8},
};

struct TierRow {
  absl::string_view name, master, worker, parameter_server;
  int workers, parameter_servers;
};

constexpr std::array kTiers = {
    TierRow{"BASIC", "standard", "", "", 0, 0},
    TierRow{"STANDARD_1", "complex_model_s", "complex_model_s", "standard", 4, 3},
    TierRow{"PREMIUM_1", "complex_model_m", "complex_model_m", "large_model", 19, 11},
    TierRow{kDefaultTier, "standard_gpu", "", "", 0, 0},
};

constexpr absl::string_view kTpuAdvice =
    "Muster's tasks do not run on TPUs; use BASIC_GPU, or CUSTOM with a machine that has GPUs";

const std::vector<std::string>& Regions() {
  static const auto& kRegions = *new std::vector<std::string>{"africa-south1",
                                                              "asia-east1",
                                                              "asia-east2",
                                                              "asia-northeast1",
                                                              "asia-northeast2",
                                                              "asia-northeast3",
                                                              "asia-south1",
                                                              "asia-southeast1",
                                                              "asia-southeast2",
                                                              "australia-southeast1",
                                                              "australia-southeast2",
                                                              "europe-central2",
                                                              "europe-north1",
                                                              "europe-southwest1",
                                                              "europe-west1",
                                                              "europe-west12",
                                                              "europe-west2",
                                                              "europe-west3",
                                                              "europe-west4",
                                                              "europe-west6",
                                                              "europe-west8",
                                                              "europe-west9",
                                                              "me-central1",
                                                              "me-central2",
                                                              "me-west1",
                                                              "northamerica-northeast1",
                                                              "northamerica-northeast2",
                                                              "southamerica-east1",
                                                              "southamerica-west1",
                                                              "us-central1",
                                                              "us-east1",
                                                              "us-east4",
                                                              "us-east5",
                                                              "us-south1",
                                                              "us-west1",
                                                              "us-west2",
                                                              "us-west3",
                                                              "us-west4"};
  return kRegions;
}

Machine MachineOf(const Row& row) {
  return {std::string(row.type), std::string(row.accelerator), row.count};
}

bool IsWord(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return absl::ascii_islower(u) || absl::ascii_isdigit(u);
  });
}

bool HasDigit(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// Returns true if the text has the form "n1-standard-8". Vertex AI checks that the type exists.
bool IsPlainType(absl::string_view type) {
  const std::vector<absl::string_view> words = absl::StrSplit(type, '-');
  return words.size() >= 2 && HasDigit(words.front()) && HasDigit(words.back()) &&
         std::all_of(words.begin(), words.end(), IsWord);
}

absl::Status UnknownMachine(absl::string_view name) {
  std::vector<std::string> known = OldMachineNames();
  for (const Row& row : kAccelerated) known.emplace_back(row.type);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown machine type '", name, "'", base::DidYouMean(name, known),
                   "; available: ", absl::StrJoin(OldMachineNames(), ", "),
                   ", or a Vertex AI machine type: n1-standard-8, n1-standard-8+NVIDIA_TESLA_T4:1, "
                   "g2-standard-8, …"));
}

// Parses "NVIDIA_TESLA_T4:2".
absl::Status AddAccelerators(absl::string_view text, Machine& machine) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  machine.accelerator = absl::AsciiStrToUpper(parts[0]);
  machine.count = 1;
  const bool named =
      absl::StartsWith(machine.accelerator, "NVIDIA_") &&
      std::all_of(machine.accelerator.begin(), machine.accelerator.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
      });
  const bool counted = parts.size() == 1 || (absl::SimpleAtoi(parts[1], &machine.count) &&
                                             machine.count >= 1 && machine.count <= 16);
  if (named && counted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' must be a Vertex AI accelerator and a count, such as ", "NVIDIA_TESLA_T4:2"));
}

}  // namespace

std::vector<std::string> OldMachineNames() {
  std::vector<std::string> names;
  names.reserve(kOldNames.size());
  for (const Row& row : kOldNames) names.emplace_back(row.name);
  return names;
}

std::string ToString(const Machine& machine) {
  if (machine.accelerator.empty()) return machine.type;
  return absl::StrCat(machine.type, "+", machine.accelerator, ":", machine.count);
}

absl::StatusOr<Machine> ParseMachine(absl::string_view name) {
  if (name == "cloud_tpu" || absl::StartsWith(name, "cloud-tpu") || absl::StartsWith(name, "ct")) {
    return absl::InvalidArgumentError(absl::StrCat("machine type '", name, "': ", kTpuAdvice));
  }
  for (const Row& row : kOldNames) {
    if (row.name == name) return MachineOf(row);
  }
  for (const Row& row : kAccelerated) {
    if (row.type == name) return MachineOf(row);
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits('+', 1));
  if (!IsPlainType(parts[0])) return UnknownMachine(name);
  Machine machine{.type = std::string(parts[0])};
  if (parts.size() == 2) MUSTER_RETURN_IF_ERROR(AddAccelerators(parts[1], machine));
  return machine;
}

absl::StatusOr<ScaleTier> FindTier(absl::string_view name) {
  if (name == kCustomTier) return ScaleTier{.name = kCustomTier, .custom = true};
  for (const TierRow& row : kTiers) {
    if (row.name != name) continue;
    return ScaleTier{.name = std::string(row.name),
                     .master = std::string(row.master),
                     .worker = std::string(row.worker),
                     .parameter_server = std::string(row.parameter_server),
                     .workers = row.workers,
                     .parameter_servers = row.parameter_servers};
  }
  if (name == "BASIC_TPU") {
    return absl::InvalidArgumentError(absl::StrCat("scale tier BASIC_TPU: ", kTpuAdvice));
  }
  std::vector<std::string> names;
  names.reserve(kTiers.size() + 1);
  for (const TierRow& row : kTiers) names.emplace_back(row.name);
  names.emplace_back(kCustomTier);
  return absl::InvalidArgumentError(absl::StrCat("unknown scale tier '", name, "'",
                                                 base::DidYouMean(name, names),
                                                 "; available: ", absl::StrJoin(names, ", ")));
}

absl::Status CheckRegion(absl::string_view region) {
  const std::vector<absl::string_view> words = absl::StrSplit(region, '-');
  const bool formed = words.size() >= 2 && HasDigit(words.back()) &&
                      std::all_of(words.begin(), words.end(), IsWord);
  if (formed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("unknown region '", region, "'", base::DidYouMean(region, Regions()),
                   "; Vertex AI is in ", absl::StrJoin(Regions(), ", ")));
}

std::optional<std::string> RegionWarning(absl::string_view region) {
  const std::vector<std::string>& known = Regions();
  if (std::find(known.begin(), known.end(), region) != known.end()) return std::nullopt;
  return absl::StrCat("unknown region '", region, "'", base::DidYouMean(region, known));
}

}  // namespace muster::vertex
