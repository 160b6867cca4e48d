#include "process/cgroup.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::process {
namespace {

// A folder with the files of a group.
class CgroupTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::ReplaceFile(base::JoinPath(temp_.path(), name), text).ok());
  }

  const base::TempDir temp_;
};

TEST_F(CgroupTest, ReadsTheCounters) {
  Write("cpu.stat", "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n");
  Write("memory.stat", "anon 4096\nfile 999999\nfile_mapped 8192\n");
  Write("io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=2\n8:16 rbytes=1 wbytes=2 rios=1 wios=1\n");
  const auto usage = ReadCgroup(temp_.path());
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->cpu, absl::Milliseconds(1500));
  EXPECT_EQ(usage->memory_bytes, 12288);
  EXPECT_EQ(usage->read_bytes, 11);
  EXPECT_EQ(usage->written_bytes, 22);
}

TEST_F(CgroupTest, ValuesOfDisabledControllersAreAbsent) {
  Write("cpu.stat", "usage_usec 1\n");
  const auto usage = ReadCgroup(temp_.path());
  ASSERT_TRUE(usage.has_value());
  EXPECT_FALSE(usage->memory_bytes.has_value());
  EXPECT_FALSE(usage->read_bytes.has_value());
}

TEST_F(CgroupTest, RejectsAFolderThatIsNoGroup) {
  EXPECT_FALSE(ReadCgroup(temp_.path()).has_value());
  Write("cpu.stat", "usage_usec x\ngarbage");
  EXPECT_FALSE(ReadCgroup(temp_.path()).has_value());
  EXPECT_FALSE(CgroupHasOnly(temp_.path(), {1}));
}

TEST_F(CgroupTest, AGroupIsSharedIfItHasAnotherProcess) {
  Write("cgroup.procs", "10\n11\n");
  EXPECT_TRUE(CgroupHasOnly(temp_.path(), {10, 11, 12}));
  EXPECT_FALSE(CgroupHasOnly(temp_.path(), {10}));
}

TEST(CgroupFolderTest, AProcessThatDoesNotExistHasNone) { EXPECT_EQ(CgroupFolder(1 << 29), ""); }

}  // namespace
}  // namespace muster::process
