#include "job/job_tls.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "cluster/address.h"
#include "gtest/gtest.h"
#include "net/authority.h"

namespace muster::job {
namespace {

TEST(JobTlsTest, ToleratesWrongClocksOfHosts) {
  const auto tls = MakeJobTls("x-12345");
  ASSERT_TRUE(tls.ok()) << tls.status();
  for (const absl::Duration skew :
       {-absl::Hours(47), absl::ZeroDuration(), absl::Hours(24 * 365)}) {
    const absl::Status accepted = net::CheckServer({tls->certificate, tls->key}, tls->authority,
                                                   cluster::kTaskTlsName, absl::Now() + skew);
    EXPECT_TRUE(accepted.ok()) << skew << ": " << accepted;
  }
}

TEST(JobTlsTest, FilesAreCreatedOnceAndPrivate) {
  const base::TempDir temp;
  const std::string folder = temp.path() + "/new/tls";
  ASSERT_TRUE(EnsureJobTls("x", folder).ok());
  const std::string key = base::ReadFile(folder + "/tls.key").value();
  struct stat info = {};
  ASSERT_EQ(::stat((folder + "/tls.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
  ASSERT_TRUE(EnsureJobTls("x", folder).ok());
  EXPECT_EQ(base::ReadFile(folder + "/tls.key").value(), key) << "all tasks get the same";
}

TEST(JobTlsTest, RejectsMismatchedFiles) {
  const base::TempDir temp;
  ASSERT_TRUE(EnsureJobTls("x", temp.path() + "/a").ok());
  ASSERT_TRUE(EnsureJobTls("x", temp.path() + "/b").ok());
  for (const char* name : {"ca.crt", "tls.key"}) {
    const std::string mine = temp.path() + "/a/" + name;
    const std::string kept = base::ReadFile(mine).value();
    ASSERT_TRUE(base::ReplaceFile(mine, base::ReadFile(temp.path() + "/b/" + name).value()).ok());
    const absl::Status mixed = EnsureJobTls("x", temp.path() + "/a");
    EXPECT_TRUE(absl::IsFailedPrecondition(mixed)) << name << mixed;
    ASSERT_EQ(::unlink(mine.c_str()), 0);
    EXPECT_TRUE(absl::IsFailedPrecondition(EnsureJobTls("x", temp.path() + "/a"))) << name;
    ASSERT_TRUE(base::ReplaceFile(mine, kept).ok());
  }
  EXPECT_TRUE(EnsureJobTls("x", temp.path() + "/a").ok());
}

}  // namespace
}  // namespace muster::job
