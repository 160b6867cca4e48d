#include "cli/config_files.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;

TEST(ConfigFilesTest, OneFileStaysAsItIs) {
  EXPECT_EQ(MergeConfigs({{"a", "# a comment\nname: x"}}).value(), "# a comment\nname: x");
}

TEST(ConfigFilesTest, MapsAreJoinedAndOfAllElseTheLastWins) {
  EXPECT_EQ(MergeConfigs({{"a", "name: x\nroles: {worker: {replicas: 2}, ps: {}}\nlist: [1, 2]\n"},
                          {"b", "roles: {worker: {replicas: 3}, chief: {}}\nlist: [3]\n"},
                          {"c", "name: '7'\nroles: {ps: {replicas: 1}}\n"}})
                .value(),
            "name: \"7\"\nroles:\n  worker:\n    replicas: 3\n  ps:\n    replicas: 1\n  chief: "
            "{}\nlist:\n"
            "  - 3\n");
}

TEST(ConfigFilesTest, MistakesNameTheirFile) {
  EXPECT_THAT(std::string(MergeConfigs({{"a", "x: 1"}, {"b.yml", "y: ["}}).status().message()),
              HasSubstr("b.yml:"));
  EXPECT_THAT(std::string(MergeConfigs({{"a", "x: 1"}, {"b.yml", "- 1"}}).status().message()),
              HasSubstr("b.yml: must hold one map"));
  EXPECT_FALSE(MergeConfigs({{"a", ""}, {"b", "x: 1"}}).ok());
}

}  // namespace
}  // namespace muster::cli
