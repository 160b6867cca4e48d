#include "history/resolve.h"

#include "gmock/gmock.h"
#include "history/test_support.h"

namespace muster::history {
namespace {

using testing::HasSubstr;

class ResolveTest : public HistoryTest {
 protected:
  ResolveTest() : history_(OpenHistory()) {}

  void Add(const std::string& id, const std::string& name) {
    job::JobRecord job = MakeJob(id, ++jobs_);
    job.name = name;
    ASSERT_TRUE(history_->AddJob(job, {}).ok());
  }
  std::string IdOf(const std::string& reference) {
    const absl::StatusOr<job::JobRecord> job = history_->Resolve(reference);
    return job.ok() ? job->id : std::string(absl::StatusCodeToString(job.status().code()));
  }

  std::unique_ptr<History> history_;
  int jobs_ = 0;
};

TEST_F(ResolveTest, ExactIdWinsOverAName) {
  Add("abc", "mnist");
  Add("def", "abc");
  EXPECT_EQ(IdOf("abc"), "abc");
}

TEST_F(ResolveTest, ExactNameIsTheNewestJobOfThatName) {
  Add("k1", "mnist");
  Add("k2", "mnist");
  Add("k3", "mnist-large");
  EXPECT_EQ(IdOf("mnist"), "k2");
}

TEST_F(ResolveTest, UniquePrefixesAreEnough) {
  Add("k1", "mnist");
  Add("q7", "cifar");
  EXPECT_EQ(IdOf("q"), "q7");
  EXPECT_EQ(IdOf("ci"), "q7");
}

TEST_F(ResolveTest, PrefixOfOneNameIsItsNewestJob) {
  Add("a1", "mnist");
  Add("a2", "mnist");
  EXPECT_EQ(IdOf("mn"), "a2");
}

TEST_F(ResolveTest, SeveralIdsOfOneNameAreAmbiguous) {
  Add("a1", "mnist");
  Add("a2", "mnist");
  EXPECT_EQ(IdOf("a"), "FAILED_PRECONDITION");
}

TEST_F(ResolveTest, AmbiguityListsTheCandidates) {
  Add("k1", "mnist");
  Add("k2", "mnemonic");
  const absl::Status status = history_->Resolve("mn").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex("'mn' is ambiguous; it matches 2 jobs:\n"
                                    "  k2  Running  20[-0-9]+ [:0-9]+\n"
                                    "  k1  Running  20[-0-9]+ [:0-9]+"));
  for (int i = 0; i < 30; ++i) Add(absl::StrCat("n", i), absl::StrCat("mn", i));
  EXPECT_THAT(std::string(history_->Resolve("mn").status().message()), HasSubstr("and 22 older"));
}

TEST_F(ResolveTest, UnknownNamesGetASuggestion) {
  Add("k1", "mnist");
  const absl::Status status = history_->Resolve("mnsit").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()), "there is no job 'mnsit' (did you mean 'mnist'?)");
  EXPECT_EQ(IdOf("zzzzzz"), "NOT_FOUND");
  EXPECT_EQ(IdOf(""), "INVALID_ARGUMENT");
}

TEST_F(ResolveTest, WildcardsAreLiteral) {
  Add("k1", "mnist");
  Add("k2", "a_b");
  Add("k3", "axb");
  Add("k4", "50%");
  for (const char* reference : {"%", "_", "*", "?", "m%", "mn_st", "[m]nist", "'", "k1' OR '1"}) {
    EXPECT_EQ(IdOf(reference), "NOT_FOUND") << reference;
  }
  EXPECT_EQ(IdOf("a_"), "k2");
  EXPECT_EQ(IdOf("50"), "k4");
  EXPECT_EQ(IdOf("50%"), "k4");
}

}  // namespace
}  // namespace muster::history
