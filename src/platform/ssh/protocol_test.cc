#include "platform/ssh/protocol.h"

#include "base/text/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::ssh {
namespace {

using testing::ElementsAre;

TEST(ProtocolTest, AStartRoundTrips) {
  const supervise::TaskStart start{.task = {"worker", 3},
                                   .attempt = 2,
                                   .launch = {.argv = {"/bin/sh", "-c", "echo 'ü' \"$X\""},
                                              .env = {{"X", "a=b\n"}, {"EMPTY", ""}},
                                              .working_dir = "/w"},
                                   .port = 2222,
                                   .port_is_picked = true,
                                   .waits_for_port = true};
  const auto arrived = StartFromJson(Json::parse(StartToJson(start).dump()));
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(arrived->task, start.task);
  EXPECT_EQ(arrived->attempt, 2);
  EXPECT_EQ(arrived->launch, start.launch);
  EXPECT_EQ(arrived->port, 2222);
  EXPECT_TRUE(arrived->port_is_picked);
  EXPECT_TRUE(arrived->waits_for_port);
}

TEST(ProtocolTest, AnEndRoundTrips) {
  const supervise::AttemptEnd end{.exit_code = 137,
                                  .reason = "out of memory",
                                  .advice = "use less",
                                  .last_lines = {"a", "b"},
                                  .may_retry = false,
                                  .port_taken = true};
  const supervise::AttemptEnd arrived = EndFromJson(Json::parse(EndToJson(end).dump()));
  EXPECT_EQ(arrived.exit_code, 137);
  EXPECT_EQ(arrived.reason, "out of memory");
  EXPECT_EQ(arrived.advice, "use less");
  EXPECT_THAT(arrived.last_lines, ElementsAre("a", "b"));
  EXPECT_FALSE(arrived.may_retry);
  EXPECT_TRUE(arrived.port_taken);
  EXPECT_EQ(EndFromJson(EndToJson({.reason = "never began"})).exit_code, std::nullopt);
}

TEST(ProtocolTest, PoliciesRoundTrip) {
  job::Policies policies;
  policies.log_rotate_bytes = 12345;
  policies.log_keep = 3;
  policies.stall = job::StallPolicy{.timeout = absl::Seconds(90)};
  const job::Policies arrived = PoliciesFromJson(PoliciesToJson(policies));
  EXPECT_EQ(arrived.log_rotate_bytes, 12345);
  EXPECT_EQ(arrived.log_keep, 3);
  ASSERT_TRUE(arrived.stall.has_value());
  EXPECT_EQ(arrived.stall->timeout, absl::Seconds(90));
  EXPECT_FALSE(PoliciesFromJson(PoliciesToJson(job::Policies())).stall.has_value());
}

TEST(ProtocolTest, SamplesRoundTrip) {
  supervise::Sample sample{.time = absl::FromUnixMicros(1'700'000'000'123'456),
                           .interval = absl::Milliseconds(1001),
                           .attempt = 3};
  sample.cpu = supervise::Load{.mean = 0.5, .peak = 2};
  sample.sent = supervise::Load{.mean = 1e9, .peak = 2e9};
  EXPECT_EQ(SampleFromJson(SampleToJson(sample)), sample);
}

TEST(ProtocolTest, InvalidValuesOfASampleAreAbsent) {
  const auto sample = SampleFromJson(Json::parse(
      R"({"attempt": -1, "interval": -5, "cpu": [1], "memory": [-1, 2], "read": "x", "sent": 1})"));
  EXPECT_EQ(sample.attempt, 0);
  EXPECT_EQ(sample.interval, absl::ZeroDuration());
  for (const auto load : supervise::kLoads) EXPECT_FALSE((sample.*load).has_value());
}

TEST(ProtocolTest, InvalidMessagesAreReadAsEmpty) {
  for (const char* text : {"null", "[]", "3", "{}", R"({"task": 1, "argv": "x", "env": []})",
                           R"({"task": "worker:0", "argv": [1, null]})",
                           R"({"task": "worker:99999999999999999999", "argv": ["x"]})"}) {
    const Json json = Json::parse(text);
    EXPECT_FALSE(StartFromJson(json).ok()) << text;
    EXPECT_EQ(EndFromJson(json).reason, "") << text;
    EXPECT_EQ(PositionFromJson(json).offset, 0U) << text;
    EXPECT_EQ(base::TextMember(json, "op"), "") << text;
    EXPECT_FALSE(base::BoolMember(json, "kill")) << text;
    PoliciesFromJson(json);
    EXPECT_FALSE(SampleFromJson(json).cpu.has_value()) << text;
  }
}

}  // namespace
}  // namespace muster::ssh
