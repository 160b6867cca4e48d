#include "job/format/expand.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using testing::ElementsAre;
using testing::Pair;

// MustParse() has HOME=/home/me and DATA=/mnt/data.
TEST(ExpandTest, PathsAndEnv) {
  const JobSpec job = MustParse(R"(
name: a
model_dir: ~/runs/${DATA}
working_dir: $DATA/code
env: {CACHE: "~/c:$DATA:~", PRICE: 5$, LITERAL: '\$DATA', COUNT: 4}
roles:
  chief: {working_dir: ~/own, env: {X: "${DATA}/{role}"}}
  worker: {}
  ps: {}
train:
  model: ~/model.pt
  warm_start: $DATA/old
  steps: 1
  data:
    format: tfrecord
    path: {train: "$DATA/train-*", test: ~/test-*}
    features: {image: {type: uint8, shape: [28, 28]}, label: int64}
hosts: [{address: vm1, key: $DATA/key}]
)");
  EXPECT_EQ(job.model_dir, "/home/me/runs/mnt/data");
  EXPECT_THAT(job.env,
              ElementsAre(Pair("CACHE", "/home/me/c:/mnt/data:/home/me"), Pair("COUNT", "4"),
                          Pair("LITERAL", "$DATA"), Pair("PRICE", "5$")));
  EXPECT_EQ(job.roles[0].working_dir, "/home/me/own");
  EXPECT_THAT(job.roles[0].env, ElementsAre(Pair("X", "/mnt/data/{role}")));
  EXPECT_EQ(job.roles[1].working_dir, "/mnt/data/code");
  EXPECT_EQ(job.train["model"], "/home/me/model.pt");
  EXPECT_EQ(job.train["warm_start"], "/mnt/data/old");
  EXPECT_EQ(job.train["data"]["path"]["train"], "/mnt/data/train-*");
  EXPECT_EQ(job.train["data"]["path"]["test"], "/home/me/test-*");
  EXPECT_EQ(job.hosts[0].key, "/mnt/data/key");
}

TEST(ExpandTest, EveryMistakeHasItsPlace) {
  EXPECT_EQ(MistakesOf("name: a\n"
                       "model_dir: $NONE/x\n"
                       "env: {A: $(date), B: '~nobody-here'}\n"
                       "train: {model: cnn, steps: 1, data: {format: mnist, path: file://~/x}}\n"),
            "job.yaml:2:12: 'model_dir' uses $NONE, which is not set or empty where muster was "
            "called; write \\$ for a dollar sign\n"
            "job.yaml:3:10: 'A' contains '$('; only $NAME and ${NAME} are expanded; write \\$ for "
            "a dollar sign\n"
            "job.yaml:3:22: 'B' uses ~nobody-here, and this machine has no such user; write \\~ "
            "for a tilde\n"
            "job.yaml:4:59: 'path' of 'data' of train is 'file://~/x', in which '~' is not "
            "expanded; write ~/x");
}

TEST(ExpandTest, CommandsAreLeftToTheirShell) {
  std::vector<std::string> warnings;
  ParseJobOptions options = TestOptions();
  options.warnings = &warnings;
  const auto job = ParseJob(
      "name: a\n"
      "command: cat ~/x $NONE $(date)\n"
      "roles:\n"
      "  worker: {}\n"
      "  ps: {command: [cat, ~/x, $NONE]}\n"
      "  other: {command: [bash, -c, ~/x]}\n",
      options);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->roles[0].command, ElementsAre("/bin/sh", "-c", "cat ~/x $NONE $(date)"));
  EXPECT_THAT(job->roles[1].command, ElementsAre("cat", "~/x", "$NONE"));
  EXPECT_THAT(warnings,
              ElementsAre("job.yaml:5:23: '~/x' is passed on as it is: no shell reads the words of "
                          "a list; write the command as one line, or a path without '~'"));
}

}  // namespace
}  // namespace muster::job
