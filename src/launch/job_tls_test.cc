#include "launch/job_tls.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cluster/address.h"
#include "gtest/gtest.h"
#include "net/authority.h"

namespace muster {
namespace {

TEST(JobTlsTest, HoldsForHostsWhoseClocksAreWrong) {
  const auto tls = MakeJobTls("x-12345");
  ASSERT_TRUE(tls.ok()) << tls.status();
  for (const absl::Duration skew :
       {-absl::Hours(47), absl::ZeroDuration(), absl::Hours(24 * 365)}) {
    const absl::Status accepted = net::CheckServer({tls->certificate, tls->key}, tls->authority,
                                                   kTaskTlsName, absl::Now() + skew);
    EXPECT_TRUE(accepted.ok()) << skew << ": " << accepted;
  }
}

}  // namespace
}  // namespace muster
