#include "platform/vertex/machines.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::vertex {
namespace {

using ::testing::HasSubstr;

TEST(VertexMachines, OldNamesMapToVertexAiMachines) {
  const std::vector<std::pair<std::string, Machine>> expected = {
      {"standard", {"n1-standard-4", "", 0}},
      {"large_model", {"n1-highmem-8", "", 0}},
      {"complex_model_s", {"n1-highcpu-16", "", 0}},
      {"complex_model_m", {"n1-highcpu-16", "", 0}},
      {"complex_model_l", {"n1-highcpu-32", "", 0}},
      {"standard_gpu", {"n1-standard-8", "NVIDIA_TESLA_T4", 1}},
      {"complex_model_m_gpu", {"n1-standard-16", "NVIDIA_TESLA_T4", 4}},
      {"complex_model_l_gpu", {"n1-standard-32", "NVIDIA_TESLA_T4", 4}},
      {"standard_p100", {"n1-standard-8", "NVIDIA_TESLA_P100", 1}},
      {"complex_model_m_p100", {"n1-standard-16", "NVIDIA_TESLA_P100", 4}},
      {"standard_v100", {"n1-standard-8", "NVIDIA_TESLA_V100", 1}},
      {"large_model_v100", {"n1-highmem-8", "NVIDIA_TESLA_V100", 1}},
      {"complex_model_m_v100", {"n1-standard-16", "NVIDIA_TESLA_V100", 4}},
      {"complex_model_l_v100", {"n1-standard-32", "NVIDIA_TESLA_V100", 8}},
  };
  std::vector<std::string> names;
  for (const auto& [name, machine] : expected) {
    const auto found = ParseMachine(name);
    ASSERT_TRUE(found.ok()) << name << ": " << found.status();
    EXPECT_EQ(*found, machine) << name;
    names.push_back(name);
  }
  EXPECT_EQ(OldMachineNames(), names);
}

TEST(VertexMachines, MatchesTheDocumentedTable) {
  const std::string manual = base::ReadFile(MUSTER_DOCS "/vertex.md").value();
  for (const std::string& name : OldMachineNames()) {
    const Machine machine = ParseMachine(name).value();
    const std::string accelerators =
        machine.count == 0 ? "" : absl::StrCat(machine.count, " ", machine.accelerator, " ");
    EXPECT_THAT(manual, HasSubstr(absl::StrCat("| `", name, "` | ", machine.type, " | ",
                                               accelerators, "|")));
  }
  for (const char* name : {"BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU"}) {
    const ScaleTier tier = FindTier(name).value();
    const auto cell = [](const std::string& machine, int most) {
      return most == 0 ? "none" : absl::StrCat("`", machine, "`, at most ", most);
    };
    const std::string row =
        absl::StrCat("| `", tier.master, "` | ", cell(tier.worker, tier.workers), " | ",
                     cell(tier.parameter_server, tier.parameter_servers), " |");
    EXPECT_THAT(manual, HasSubstr(row)) << name;
  }
}

TEST(VertexMachines, AcceptsVertexAiTypesWithAccelerators) {
  EXPECT_EQ(*ParseMachine("n1-standard-16"), (Machine{"n1-standard-16", "", 0}));
  EXPECT_EQ(*ParseMachine("n1-standard-8+NVIDIA_TESLA_T4:2"),
            (Machine{"n1-standard-8", "NVIDIA_TESLA_T4", 2}));
  EXPECT_EQ(*ParseMachine("n1-standard-8+nvidia_tesla_t4"),
            (Machine{"n1-standard-8", "NVIDIA_TESLA_T4", 1}));
  EXPECT_EQ(*ParseMachine("g2-standard-24"), (Machine{"g2-standard-24", "NVIDIA_L4", 2}));
  // Vertex AI may offer types that are not listed here.
  EXPECT_EQ(*ParseMachine("e2-highmem-8"), (Machine{"e2-highmem-8", "", 0}));
  EXPECT_EQ(*ParseMachine("c9d-mega-128-x2+NVIDIA_X1:4"),
            (Machine{"c9d-mega-128-x2", "NVIDIA_X1", 4}));
  EXPECT_EQ(*ParseMachine("a2-highgpu-8g"), (Machine{"a2-highgpu-8g", "NVIDIA_TESLA_A100", 8}));
}

TEST(VertexMachines, RejectsUnknownMachines) {
  EXPECT_THAT(std::string(ParseMachine("standart_gpu").status().message()),
              HasSubstr("did you mean 'standard_gpu'?"));
  EXPECT_THAT(std::string(ParseMachine("cloud_tpu").status().message()), HasSubstr("TPU"));
  for (const char* wrong : {"", "+", "n1-standard-", "n1-standard-x", "n1-standard-8+",
                            "n1-standard-8+NVIDIA_TESLA_T4:0", "n1-standard-8+NVIDIA_TESLA_T4:x",
                            "n1-standard-8+TPU_V3:8", "standard-gpu", "N1-standard-8", "n1/x-8"}) {
    EXPECT_FALSE(ParseMachine(wrong).ok()) << wrong;
  }
}

TEST(VertexMachines, TiersHaveTheMachinesOfTheirNames) {
  const auto standard = FindTier("STANDARD_1");
  ASSERT_TRUE(standard.ok());
  EXPECT_EQ(standard->master, "complex_model_s");
  EXPECT_EQ(standard->workers, 4);
  EXPECT_EQ(standard->parameter_servers, 3);
  EXPECT_EQ(FindTier("PREMIUM_1")->workers, 19);
  EXPECT_EQ(FindTier("BASIC_GPU")->master, "standard_gpu");
  EXPECT_TRUE(FindTier("CUSTOM")->custom);
  EXPECT_THAT(std::string(FindTier("BASIC_TPU").status().message()), HasSubstr("TPU"));
  EXPECT_THAT(std::string(FindTier("basic_gpu").status().message()),
              HasSubstr("did you mean 'BASIC_GPU'?"));
}

TEST(VertexMachines, AnUnknownRegionIsReportedWithTheKnownOnes) {
  EXPECT_TRUE(CheckRegion("europe-west4").ok());
  const std::string said(CheckRegion("us-central").message());
  EXPECT_THAT(said, HasSubstr("did you mean 'us-central1'?"));
  EXPECT_THAT(said, HasSubstr("asia-northeast1"));
  for (const char* wrong : {"", "-1", "us", "us-central1/x", "US-central1", "us-central1."}) {
    EXPECT_FALSE(CheckRegion(wrong).ok()) << wrong;
  }
  EXPECT_TRUE(CheckRegion("northamerica-south1").ok());
  EXPECT_EQ(RegionWarning("europe-west4"), std::nullopt);
  EXPECT_THAT(*RegionWarning("us-centrall1"), HasSubstr("did you mean 'us-central1'?"));
}

TEST(MachinesTest, AMachineIsPrintedAsItIsParsed) {
  for (const char* name : {"n1-standard-8", "n1-standard-8+NVIDIA_TESLA_T4:2"}) {
    EXPECT_EQ(ToString(ParseMachine(name).value()), name);
  }
}

}  // namespace
}  // namespace muster::vertex
