#include "controller/guard.h"

#include <new>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::controller {
namespace {

TEST(GuardTest, ResultsPass) {
  EXPECT_EQ(Guarded([] { return absl::OkStatus(); }), absl::OkStatus());
  const absl::Status gone = absl::NotFoundError("gone");
  EXPECT_EQ(Guarded([&] { return gone; }), gone);
  EXPECT_FALSE(IsThrown(gone));
}

TEST(GuardTest, ExceptionsDoNot) {
  const absl::Status status = Guarded([] {
    const nlohmann::json job = {{"ports", {{{"name", 8080}}}}};
    const std::string name = job["ports"][0].value("name", "");
    return absl::OkStatus();
  });
  EXPECT_TRUE(IsThrown(status));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("type must be string"), std::string::npos) << status;
}

TEST(GuardTest, TooLittleMemoryMayPass) {
  const absl::Status status = Guarded([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(IsThrown(status));
}

}  // namespace
}  // namespace muster::controller
