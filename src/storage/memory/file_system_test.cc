#include "storage/memory/file_system.h"

#include "gtest/gtest.h"
#include "storage/testing/conformance.h"

namespace muster::storage {
namespace {

class MemoryPlace final : public Place {
 public:
  FileSystem& files() override { return files_; }
  Url root() override { return *ParseUrl("memory://"); }

 private:
  MemoryFileSystem files_;
};

INSTANTIATE_TEST_SUITE_P(Memory, ConformanceTest,
                         testing::Values(Backend{
                             .name = "memory",
                             .make = [](std::string*) { return std::make_unique<MemoryPlace>(); },
                         }));

TEST(MemoryFileSystemTest, ReportsExceededCapacityAndKeepsItsFiles) {
  MemoryFileSystem files(10);
  const Url a = *ParseUrl("memory://a"), b = *ParseUrl("memory://b");
  ASSERT_TRUE(WriteWhole(files, a, "12345678").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(WriteWhole(files, b, "123")));
  EXPECT_TRUE(absl::IsResourceExhausted(WriteWhole(files, a, "12345678901")));
  EXPECT_EQ(*ReadWhole(files, a), "12345678");
  EXPECT_TRUE(WriteWhole(files, a, "1234567890").ok());
}

TEST(MemoryFileSystemTest, ReadWholeHasALimit) {
  MemoryFileSystem files;
  const Url url = *ParseUrl("memory://a");
  ASSERT_TRUE(WriteWhole(files, url, "12345").ok());
  EXPECT_TRUE(absl::IsOutOfRange(ReadWhole(files, url, 4).status()));
  EXPECT_EQ(*ReadWhole(files, url, 5), "12345");
}

}  // namespace
}  // namespace muster::storage
