#include "jobs/start/config_files.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::jobs {
namespace {

using testing::HasSubstr;

TEST(ConfigFilesTest, ASingleFileIsUnchanged) {
  EXPECT_EQ(MergeConfigs({{"a", "# a comment\nname: x"}}).value(), "# a comment\nname: x");
}

TEST(ConfigFilesTest, MergesMapsAndReplacesOtherValues) {
  EXPECT_EQ(MergeConfigs({{"a", "name: x\nroles: {worker: {replicas: 2}, ps: {}}\nlist: [1, 2]\n"},
                          {"b", "roles: {worker: {replicas: 3}, chief: {}}\nlist: [3]\n"},
                          {"c", "name: '7'\nroles: {ps: {replicas: 1}}\n"}})
                .value(),
            "name: \"7\"\nroles:\n  worker:\n    replicas: 3\n  ps:\n    replicas: 1\n  chief: "
            "{}\nlist:\n"
            "  - 3\n");
}

TEST(ConfigFilesTest, NumbersStayAsWritten) {
  EXPECT_EQ(MergeConfigs({{"a", "env: {VERSION: 1.10}\n"}, {"b", "env: {ZIP: 0042}\n"}}).value(),
            "env:\n  VERSION: 1.10\n  ZIP: 0042\n");
}

TEST(ConfigFilesTest, ErrorsNameTheFile) {
  EXPECT_THAT(std::string(MergeConfigs({{"a", "x: 1"}, {"b.yml", "y: ["}}).status().message()),
              HasSubstr("b.yml:"));
  EXPECT_THAT(std::string(MergeConfigs({{"a", "x: 1"}, {"b.yml", "- 1"}}).status().message()),
              HasSubstr("b.yml: must contain a single map"));
  EXPECT_FALSE(MergeConfigs({{"a", ""}, {"b", "x: 1"}}).ok());
}

}  // namespace
}  // namespace muster::jobs
