#include "base/files/regular_file.h"

#include <sys/stat.h>

#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(RegularFileTest, OtherFileTypesAreRejectedWithoutBlocking) {
  const TempDir temp;
  const std::string directory = temp.path();
  const std::string path = JoinPath(directory, "f");
  EXPECT_EQ(ReadRegularFile(path, 10).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(path, "text").ok());
  EXPECT_EQ(*ReadRegularFile(path, 4), "text");
  EXPECT_EQ(ReadRegularFile(path, 3).status().code(), absl::StatusCode::kOutOfRange);
  const std::string fifo = JoinPath(directory, "fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& other : {fifo, directory, std::string("/dev/zero")}) {
    EXPECT_EQ(ReadRegularFile(other, 10).status().code(), absl::StatusCode::kFailedPrecondition)
        << other;
  }
}

}  // namespace
}  // namespace muster::base
