#include "codec/diagnostics.h"

#include "gtest/gtest.h"

namespace muster::codec {
namespace {

TEST(DiagnosticsTest, NoMistakesIsOk) { EXPECT_TRUE(Diagnostics("job.yaml").ToStatus().ok()); }

TEST(DiagnosticsTest, MistakesAreOrderedByPosition) {
  Diagnostics diagnostics("job.yaml");
  diagnostics.Add({3, 1}, "third");
  diagnostics.Add({1, 12}, "second");
  diagnostics.Add({1, 2}, "first");
  diagnostics.Add({}, "the whole");
  const absl::Status status = diagnostics.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "job.yaml: the whole\n"
            "job.yaml:1:2: first\n"
            "job.yaml:1:12: second\n"
            "job.yaml:3:1: third");
}

TEST(DiagnosticsTest, TheRestIsCounted) {
  Diagnostics diagnostics("f");
  for (size_t i = 0; i < Diagnostics::kLimit + 2; ++i) diagnostics.Add({1, 1}, "x");
  EXPECT_EQ(diagnostics.count(), Diagnostics::kLimit + 2);
  const std::string message(diagnostics.ToStatus().message());
  EXPECT_EQ(message.substr(message.rfind('\n') + 1), "f: and 2 more mistakes");
}

TEST(DiagnosticsTest, ANamedMarkReplacesThePosition) {
  Diagnostics diagnostics("job.yaml");
  diagnostics.NameMark({100, 1}, "--set steps");
  diagnostics.Add({100, 1}, "too small");
  diagnostics.Add({3, 1}, "unknown");
  EXPECT_EQ(diagnostics.ToStatus().message(), "job.yaml:3:1: unknown\n--set steps: too small");
}

}  // namespace
}  // namespace muster::codec
