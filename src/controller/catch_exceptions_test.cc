#include "controller/catch_exceptions.h"

#include <new>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::controller {
namespace {

TEST(CatchExceptionsTest, ReturnsTheResult) {
  EXPECT_EQ(CatchExceptions([] { return absl::OkStatus(); }), absl::OkStatus());
  const absl::Status gone = absl::NotFoundError("gone");
  EXPECT_EQ(CatchExceptions([&] { return gone; }), gone);
  EXPECT_FALSE(IsFromException(gone));
}

TEST(CatchExceptionsTest, ConvertsExceptions) {
  const absl::Status status = CatchExceptions([] {
    const nlohmann::json job = {{"ports", {{{"name", 8080}}}}};
    const std::string name = job["ports"][0].value("name", "");
    return absl::OkStatus();
  });
  EXPECT_TRUE(IsFromException(status));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("type must be string"), std::string::npos) << status;
}

TEST(CatchExceptionsTest, OutOfMemoryIsRetryable) {
  const absl::Status status = CatchExceptions([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(IsFromException(status));
}

}  // namespace
}  // namespace muster::controller
