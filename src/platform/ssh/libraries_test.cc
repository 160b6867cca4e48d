#include "platform/ssh/libraries.h"

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::ssh {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(NeededLibrariesTest, OfThisProgram) {
  EXPECT_THAT(NeededLibraries("/proc/self/exe"), Contains("libc.so.6"));
}

TEST(NeededLibrariesTest, OfInvalidAndTruncatedFiles) {
  EXPECT_THAT(NeededLibraries("/no/such/file"), IsEmpty());
  const base::TempDir temp;
  const std::string path = base::JoinPath(temp.path(), "program");
  const auto whole = base::ReadFile("/bin/true");
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (size_t size = 0; size < whole->size(); size += 97) {
    ASSERT_TRUE(base::ReplaceFile(path, whole->substr(0, size)).ok());
    NeededLibraries(path);
  }
  ASSERT_TRUE(base::ReplaceFile(path, "#!/bin/sh\n").ok());
  EXPECT_THAT(NeededLibraries(path), IsEmpty());
}

TEST(NotInTest, WholeNamesCount) {
  const char known[] =
      "\tlibz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1\n"
      "\tlibtorch.so.1.13 (libc6,x86-64) => /usr/lib/libtorch.so.1.13\n";
  EXPECT_THAT(NotIn(known, {"libz.so.1", "libtorch.so.1", "libnone.so"}),
              ElementsAre("libtorch.so.1", "libnone.so"));
}

}  // namespace
}  // namespace muster::ssh
