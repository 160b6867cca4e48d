#include "checkpoint/format.h"

#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

TEST(FormatTest, FoldersSortByStepAndReadBack) {
  EXPECT_EQ(StepFolder(500), "step-000000500");
  for (const int64_t step : {int64_t{0}, int64_t{500}, int64_t{12'345'678'901}}) {
    EXPECT_EQ(ParseStepFolder(StepFolder(step)), step);
  }
  for (const char* name :
       {"step-500", "step-", "step-00000050x", "step--00000500", "best.json",
        "step-000000500.partial", "step-0000000500", "step-99999999999999999999"}) {
    EXPECT_EQ(ParseStepFolder(name), std::nullopt) << name;
  }
}

TEST(FormatTest, ShardNamesReadBack) {
  EXPECT_EQ(ShardFile("model", 2, 13), "model-00002-of-00013.safetensors");
  const auto shard = ParseShardFile("optimizer-00002-of-00013.safetensors");
  ASSERT_TRUE(shard.has_value());
  EXPECT_EQ(shard->kind, "optimizer");
  EXPECT_EQ(shard->number, 2);
  EXPECT_EQ(shard->count, 13);
  for (const char* name : {"model.safetensors.index.json", "model-", "model-00001", "state.json",
                           "other-00001-of-00001.safetensors", "model-1-of-1.safetensors",
                           "model-00001-of-00001.safetensors.x"}) {
    EXPECT_FALSE(ParseShardFile(name).has_value()) << name;
  }
}

TEST(FormatTest, APlainNameStaysInItsFolder) {
  EXPECT_TRUE(IsPlainFileName("state.json"));
  for (const auto& name :
       {std::string(), std::string(".."), std::string("../x"), std::string("/etc/passwd"),
        std::string("a/b"), std::string(".lock"), std::string("a\0b", 3), std::string(300, 'a')}) {
    EXPECT_FALSE(IsPlainFileName(name)) << name;
  }
}

}  // namespace
}  // namespace muster::checkpoint
