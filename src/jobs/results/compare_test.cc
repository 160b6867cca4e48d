#include "jobs/results/compare.h"

#include "gmock/gmock.h"

namespace muster::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(ParametersTest, ArePathsAsInSet) {
  EXPECT_THAT(ParametersIn("name: a\ntrain: {steps: 5, data: {path: x.y, shape: [1, 2]}}\n"
                           "env: {a.b: '1'}\nroles: {worker: {}}\n"),
              ElementsAre(Pair("env.a\\.b", "1"), Pair("name", "a"), Pair("roles.worker", "{}"),
                          Pair("train.data.path", "x.y"), Pair("train.data.shape", "[1,2]"),
                          Pair("train.steps", "5")));
  EXPECT_THAT(ParametersIn("{"), IsEmpty());
  EXPECT_THAT(ParametersIn(""), IsEmpty());
}

TEST(ParametersTest, ARowDiffersIfAJobHasAnotherValueOrNone) {
  EXPECT_FALSE((ParameterRow{"x", {"1", "1"}}.differs()));
  EXPECT_TRUE((ParameterRow{"x", {"1", "2"}}.differs()));
  EXPECT_TRUE((ParameterRow{"x", {"1", std::nullopt}}.differs()));
}

}  // namespace
}  // namespace muster::jobs
