#include "job/format/parse.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using testing::HasSubstr;

constexpr char kShort[] = "name: a\ncommand: x\n";

// Returns the mistakes of a job whose other parts are valid.
std::string MistakesOfRoles(const std::string& roles) {
  return MistakesOf(absl::StrCat("{name: a, command: x, roles: ", roles, "}"));
}
std::string MistakesOfPolicies(const std::string& policies) {
  return MistakesOf(
      absl::StrCat("{name: a, command: x, roles: {worker: 1}, policies: ", policies, "}"));
}

TEST(ParseJobTest, TheExampleOfTheDocumentation) {
  const JobSpec job = MustParse(R"(
name: mnist
model_dir: runs/mnist              # or gs://bucket/path …
roles:
  chief: {}
  worker: {replicas: 2}
  ps: {replicas: 1}
  evaluator: {}
train:
  model: cnn
  data: {format: mnist, path: data/mnist}
  optimizer: {type: adam, learning_rate: 0.001}
  batch_size: 64
  steps: 2000
  strategy: sync
  checkpoint: {every_steps: 500, keep: 5}
  evaluate: {every_steps: 500, split: test}
policies: {max_restarts: 3, start_timeout: 60s, deadline: 2h}
)");
  EXPECT_EQ(job.format, JobFormat::kNative);
  EXPECT_EQ(job.name, "mnist");
  EXPECT_EQ(job.model_dir, "/home/me/runs/mnist");
  const std::vector<cluster::TaskId> tasks = {
      {"chief", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}, {"evaluator", 0}};
  EXPECT_EQ(job.Tasks(), tasks);
  EXPECT_TRUE(job.roles[0].command.empty());
  EXPECT_EQ(job.policies.deadline, absl::Hours(2));
  EXPECT_EQ(job.policies.success, SuccessPolicy::kChief);
  EXPECT_EQ(job.train["data"]["path"], "/home/me/data/mnist");
  EXPECT_EQ(job.train["optimizer"]["learning_rate"], 0.001);
}

TEST(ParseJobTest, EveryKeyOfARole) {
  const JobSpec job = MustParse(R"(
name: full
env: {A: 1, B: "two"}
working_dir: src
image: tf:1
command: [python, train.py, --index, "{index}"]
roles:
  chief:
  worker:
    replicas: 2
    command: python train.py --role={role} | tee log-${HOME}
    env: {C: true, EMPTY: ""}
    working_dir: other
    restart: never
    ready: listening
    addresses: ["h1:2222", "[::1]:2223"]
    resources: {cpus: 1.5, memory: 4G, gpus: 1}
    image: tf:2
  ps: 3
policies: {restart: on-failure}
)");
  EXPECT_EQ(job.env, (std::map<std::string, std::string>{{"A", "1"}, {"B", "two"}}));
  const RoleSpec& chief = job.roles[0];
  EXPECT_EQ(chief.command, (std::vector<std::string>{"python", "train.py", "--index", "{index}"}));
  EXPECT_EQ(chief.working_dir, "src");
  EXPECT_EQ(chief.image, "tf:1");
  EXPECT_EQ(chief.restart, RestartPolicy::kOnFailure);
  EXPECT_EQ(chief.replicas, 1);
  const RoleSpec& worker = job.roles[1];
  EXPECT_EQ(worker.command,
            (std::vector<std::string>{"/bin/sh", "-c",
                                      "python train.py --role={role} | tee log-${HOME}"}));
  EXPECT_EQ(worker.env, (std::map<std::string, std::string>{{"C", "true"}, {"EMPTY", ""}}));
  EXPECT_EQ(worker.working_dir, "other");
  EXPECT_EQ(worker.restart, RestartPolicy::kNever);
  EXPECT_EQ(worker.ready, Readiness::kListening);
  EXPECT_EQ(worker.addresses, (std::vector<std::string>{"h1:2222", "[::1]:2223"}));
  EXPECT_EQ(worker.resources.cpus, 1.5);
  EXPECT_EQ(worker.resources.memory_bytes, int64_t{4} << 30);
  EXPECT_EQ(worker.resources.gpus, 1);
  EXPECT_EQ(worker.image, "tf:2");
  EXPECT_EQ(job.roles[2].replicas, 3);
}

TEST(ParseJobTest, EveryPolicy) {
  const JobSpec job = MustParse(R"(
name: a
command: x
roles: {worker: 2}
notebook: {password: 0123, port: 9999}
policies:
  max_restarts: 5
  restart_scope: job
  backoff: 2s
  max_backoff: 1m30s
  start_timeout: 45
  deadline: 1d
  stop_grace: 0
  finish_grace: 5s
  success: all_workers
  stall: {timeout: 10m, action: report}
  logs: {rotate_at: 1M, keep: 2}
)");
  const Policies expected = {.max_restarts = 5,
                             .restart_scope = RestartScope::kJob,
                             .backoff = absl::Seconds(2),
                             .max_backoff = absl::Seconds(90),
                             .start_timeout = absl::Seconds(45),
                             .deadline = absl::Hours(24),
                             .stop_grace = absl::ZeroDuration(),
                             .finish_grace = absl::Seconds(5),
                             .success = SuccessPolicy::kAllWorkers,
                             .stall = StallPolicy{absl::Minutes(10), StallAction::kReport},
                             .log_rotate_bytes = 1 << 20,
                             .log_keep = 2};
  EXPECT_TRUE(job.policies == expected);
  EXPECT_EQ(job.notebook.dump(), R"({"password":"0123","port":9999})");
}

TEST(ParseJobTest, DefaultsOfPolicies) {
  const auto success = [](const std::string& roles) {
    return MustParse(absl::StrCat(kShort, "roles: ", roles, "\n")).policies.success;
  };
  EXPECT_EQ(success("{chief: 1, worker: 1}"), SuccessPolicy::kChief);
  EXPECT_EQ(success("{master: 1}"), SuccessPolicy::kChief);
  EXPECT_EQ(success("{worker: 2, ps: 1}"), SuccessPolicy::kAllWorkers);
  const JobSpec job = MustParse(
      absl::StrCat(kShort, "roles: {worker: 1}\n", "policies: {stall: 5m, backoff: 2m}\n"));
  EXPECT_EQ(job.policies.stall, (StallPolicy{absl::Minutes(5), StallAction::kRestart}));
  EXPECT_EQ(job.policies.max_backoff, absl::Minutes(2)) << "never less than backoff";
}

TEST(ParseJobTest, ModelDirOfTheTrainerIsAPathOrAUrlThatMusterStoresTo) {
  const auto model_dir = [](const std::string& text) {
    return absl::StrCat("name: a\ntrain: {model: cnn, data: {format: synthetic}, steps: 1}\n",
                        "roles: {chief: 1}\nmodel_dir: ", text, "\n");
  };
  EXPECT_EQ(MustParse(model_dir("../runs/./x/")).model_dir, "/home/runs/x");
  EXPECT_EQ(MustParse(model_dir("/tmp/x")).model_dir, "/tmp/x");
  EXPECT_EQ(MustParse(model_dir("gs://bucket/x")).model_dir, "gs://bucket/x");
  EXPECT_EQ(MustParse(model_dir("hdfs://node:9000/x")).model_dir, "hdfs://node:9000/x");
  EXPECT_EQ(MustParse(model_dir("hdfs:///x")).model_dir, "hdfs:///x");
  EXPECT_EQ(MustParse(model_dir("dfs:///x")).model_dir, "dfs:///x");
  EXPECT_EQ(MistakesOf(model_dir("s4://b/x")),
            "job.yaml:4:12: 'model_dir' has the unknown scheme 's4'; expected a path or one of: "
            "file://, gs://, s3://, hdfs:// (did you mean 's3'?)");
  EXPECT_EQ(MistakesOf(model_dir("dfs://user/me")),
            "job.yaml:4:12: 'model_dir' is 'dfs://user/me'; expected dfs:///path for the default "
            "file system, or hdfs://host:port/path");
  EXPECT_EQ(
      MistakesOf(model_dir("gs://")),
      "job.yaml:4:12: 'model_dir' is incomplete: 'gs://'; expected a URL such as gs://bucket/path");
  EXPECT_EQ(MistakesOf(model_dir("''")),
            "job.yaml:4:12: 'model_dir' is empty; expected a path or a URL");
}

TEST(ParseJobTest, ModelDirOfOwnProgramsMayHaveAnyScheme) {
  const auto model_dir = [](const std::string& text) {
    return absl::StrCat(kShort, "roles: {worker: 1}\nmodel_dir: ", text, "\n");
  };
  for (const char* url : {"dfs://user/me", "abfs://c@a.dfs.core.windows.net/x", "wasb://c/../x",
                          "foo+bar-1.2://", "viewfs:///a//b/", "s3a://b/{job_id}"}) {
    const std::string with_path = absl::StrCat(url, "x");
    EXPECT_EQ(MustParse(model_dir(absl::StrCat("'", with_path, "'"))).model_dir, with_path);
  }
  EXPECT_EQ(MustParse(model_dir("file:///x/y")).model_dir, "/x/y");
  EXPECT_THAT(MistakesOf(model_dir("a b://x")), HasSubstr("unknown scheme 'a b'"));
  EXPECT_THAT(MistakesOf(model_dir("foo://")), HasSubstr("is incomplete"));
}

TEST(ParseJobTest, SeveralMistakesAtOnceInTheFilesOrder) {
  EXPECT_EQ(
      MistakesOf("nam: mnist\n"
                 "roles:\n"
                 "  worker:\n"
                 "    replica: 2\n"
                 "    restart: onfailure\n"
                 "  Chief: {replicas: two}\n"
                 "policies: {max_restarts: -1, deadlin: 2h}\n"),
      "job.yaml:1:1: the job lacks 'name'; expected lower-case letters, digits and '-', a letter "
      "or digit at both ends, at most 63 characters\n"
      "job.yaml:1:1: unknown key 'nam' in the job (did you mean 'name'?)\n"
      "job.yaml:3:3: role 'worker' has no 'command'; expected one here or for the whole job, or "
      "a 'train' section\n"
      "job.yaml:4:5: unknown key 'replica' in role 'worker' (did you mean 'replicas'?)\n"
      "job.yaml:5:14: 'restart' of role 'worker' must be never | on-failure | always | "
      "exit-code, not text 'onfailure' (did you mean 'on-failure'?)\n"
      "job.yaml:6:3: unknown role 'Chief' (did you mean 'chief'?)\n"
      "job.yaml:6:3: role 'Chief' has no 'command'; expected one here or for the whole job, or a "
      "'train' section\n"
      "job.yaml:6:21: 'replicas' of role 'Chief' must be a whole number from 0 to 4096, not text "
      "'two'\n"
      "job.yaml:7:26: 'max_restarts' of policies must be a whole number from 0 to 1000000, not "
      "the number -1\n"
      "job.yaml:7:30: unknown key 'deadlin' in policies (did you mean 'deadline'?)");
}

// "file:1:2: message" -> "message".
std::string WithoutPlace(const std::string& mistake) {
  return mistake.substr(mistake.find(": ") + 2);
}

TEST(ParseJobTest, DuplicateKeys) {
  EXPECT_EQ(MistakesOf("name: a\ncommand: x\nroles: {worker: 1}\nname: b\n"),
            "job.yaml:4:1: the key 'name' is already set at 1:1");
  // Other mistakes are still reported.
  EXPECT_EQ(MistakesOf("name: a\nname: b\ncommand: x\nroles: {worker: -1}\n"),
            "job.yaml:2:1: the key 'name' is already set at 1:1\n"
            "job.yaml:4:17: " +
                WithoutPlace(MistakesOf("name: a\ncommand: x\nroles: {worker: -1}\n")));
}

TEST(ParseJobTest, Names) {
  const auto named = [](const std::string& name) {
    return absl::StrCat("name: ", name, "\ncommand: x\nroles: {worker: 1}\n");
  };
  MustParse(named("a-1"));
  MustParse(named("7"));
  MustParse(named(std::string(63, 'a')));
  for (const std::string& name : {std::string("Mnist"), std::string("a_b"), std::string("-a"),
                                  std::string("a-"), std::string("''"), std::string(64, 'a')}) {
    EXPECT_THAT(MistakesOf(named(name)), HasSubstr("is not valid; expected lower-case letters"))
        << name;
  }
  EXPECT_EQ(MistakesOfRoles("{workers: 2, worker: 1}"),
            "job.yaml:1:31: unknown role 'workers' (did you mean 'worker'?)");
  EXPECT_THAT(MistakesOfRoles("{my_role: 1}"), HasSubstr("the role's name 'my_role' is not valid"));
  EXPECT_EQ(MistakesOfRoles("{actor: 1, learner-2: 1}"), "");
  EXPECT_THAT(MistakesOfRoles("{worker: {env: {'A B': 1}}}"),
              HasSubstr("the variable's name 'A B' is not valid"));
}

TEST(ParseJobTest, ChecksRulesBetweenRoles) {
  EXPECT_EQ(MistakesOfRoles("{chief: 1, master: 1}"),
            "job.yaml:1:41: roles 'chief' and 'master' both lead the job; keep one of them");
  EXPECT_EQ(MistakesOfRoles("{chief: 2}"),
            "job.yaml:1:31: role 'chief' has 2 replicas; expected 1 at most");
  EXPECT_EQ(MistakesOfRoles("{worker: 1, evaluator: 2}"),
            "job.yaml:1:42: role 'evaluator' has 2 replicas; expected 1 at most");
  EXPECT_EQ(
      MistakesOfRoles("{worker: -1, chief: 1}"),
      "job.yaml:1:39: 'replicas' of role 'worker' must be a whole number from 0 to 4096, not the "
      "number -1");
  EXPECT_EQ(
      MistakesOfRoles("{worker: {replicas: 100000}}"),
      "job.yaml:1:50: 'replicas' of role 'worker' must be a whole number from 0 to 4096, not the "
      "number 100000");
  EXPECT_EQ(MistakesOfRoles("{a: 4096, b: 4096, worker: 4096}"),
            "job.yaml:1:30: the job has 12288 tasks; expected 10000 at most");
  for (const char* roles : {"{ps: 2}", "{}", "{worker: 0}"}) {
    EXPECT_THAT(MistakesOfRoles(roles), HasSubstr("the job has no task that trains")) << roles;
  }
}

TEST(ParseJobTest, RolesAreRequired) {
  EXPECT_EQ(
      MistakesOf(kShort),
      "job.yaml:1:1: the job lacks 'roles'; expected a map of roles such as {chief: {}, worker: "
      "{replicas: 2}}, or a 'train' section");
  EXPECT_EQ(
      MistakesOfRoles("[worker]"),
      "job.yaml:1:30: 'roles' must be a map of roles such as {chief: {}, worker: {replicas: 2}}, "
      "not a list");
  EXPECT_THAT(MistakesOfRoles("{worker: many}"),
              HasSubstr("role 'worker' must be a map, not text 'many'"));
}

TEST(ParseJobTest, AddressesAndPorts) {
  EXPECT_EQ(MistakesOfRoles("{worker: {replicas: 2, addresses: ['a:1']}}"),
            "job.yaml:1:31: role 'worker' has 1 addresses for 2 replicas; expected one each");
  EXPECT_EQ(MistakesOfRoles("{worker: {addresses: ['a']}}"),
            "job.yaml:1:31: role 'worker' has the address 'a'; expected host:port");
  EXPECT_EQ(MistakesOfRoles("{worker: {addresses: ['a:1']}, ps: {addresses: ['a:1']}}"),
            "job.yaml:1:61: role 'ps' has the address 'a:1', which another task also has");
  EXPECT_EQ(MistakesOfRoles("{worker: {addresses: ['a:1'], port: 1}}"),
            "job.yaml:1:31: role 'worker' has both 'port' and 'addresses'; keep one of them");
  EXPECT_THAT(MistakesOfRoles("{worker: {port: 65536}}"), HasSubstr("from 1 to 65535"));
  EXPECT_EQ(MistakesOfRoles("{worker: {port: 65535, replicas: 2}}"),
            "job.yaml:1:31: role 'worker' needs ports 65535 to 65536; the last port is 65535");
}

TEST(ParseJobTest, Commands) {
  const auto command = [](const std::string& text) {
    return absl::StrCat("name: a\nroles: {worker: 1}\ncommand: ", text, "\n");
  };
  EXPECT_EQ(MistakesOf(command("python {rol} {prot}")),
            "job.yaml:3:10: unknown placeholder {rol} (did you mean {role}?)\n"
            "job.yaml:3:10: unknown placeholder {prot} (did you mean {port}?)");
  EXPECT_EQ(MistakesOf(command("[python, '{indx}']")),
            "job.yaml:3:19: unknown placeholder {indx} (did you mean {index}?)");
  EXPECT_EQ(MistakesOf(command("train --dir {model_dir}")),
            "job.yaml:3:10: {model_dir} is used, but the job has no 'model_dir'");
  MustParse(command("awk '{print $1}' ${rol} {a,b} '{\"x\":1}' {} {unrelated} {ROLE} {role"));
  for (const char* bad : {"{}", "[]", "''", "", "{role}"}) {
    EXPECT_THAT(MistakesOf(command(bad)),
                HasSubstr("must be a line for a shell or a list of words"));
  }
  EXPECT_EQ(MistakesOfRoles("{worker: {env: {DIR: '{model_dri}'}}}"),
            "job.yaml:1:51: unknown placeholder {model_dri} (did you mean {model_dir}?)");
}

TEST(ParseJobTest, ModelDirMayContainTheJobId) {
  const auto job = [](const std::string& model_dir) {
    return absl::StrCat("name: a\nroles: {worker: {command: x}}\nmodel_dir: ", model_dir, "\n");
  };
  EXPECT_EQ(MustParse(job("/runs/{job_id}")).model_dir, "/runs/{job_id}");
  EXPECT_EQ(MustParse(job("'s3://b/{job_id}/x{y}'")).model_dir, "s3://b/{job_id}/x{y}");
  EXPECT_EQ(MistakesOf(job("runs/{jobid}")),
            "job.yaml:3:12: 'model_dir' may use the placeholder {job_id} only, not {jobid}");
  EXPECT_EQ(MistakesOf(job("runs/{name}")),
            "job.yaml:3:12: 'model_dir' may use the placeholder {job_id} only, not {name}");
}

TEST(ParseJobTest, ChecksRulesBetweenPolicies) {
  EXPECT_EQ(MistakesOfPolicies("{backoff: 1m, max_backoff: 5s}"),
            "job.yaml:1:80: 'max_backoff' (5s) is less than 'backoff' (1m)");
  EXPECT_THAT(MistakesOfPolicies("{deadline: 0}"),
              HasSubstr("'deadline' of policies must be more than 0"));
  EXPECT_THAT(MistakesOfPolicies("{deadline: -5s}"), HasSubstr("must be a duration such as"));
  EXPECT_THAT(MistakesOfPolicies("{stall: {action: report}}"), HasSubstr("stall lacks 'timeout'"));
  EXPECT_THAT(MistakesOfPolicies("{logs: {rotate_at: 1}}"), HasSubstr("must be 4.0KiB or more"));
  EXPECT_THAT(MistakesOf("{name: a, command: x, roles: {actor: 1}, policies: {success: chief}}"),
              HasSubstr("'success: chief' needs a role"));
}

TEST(ParseJobTest, TheFileAsAWhole) {
  EXPECT_EQ(MistakesOf(""), "job.yaml: the file has no job; expected at least 'name' and 'roles'");
  EXPECT_EQ(MistakesOf("# only\n# comments\n"), MistakesOf(""));
  EXPECT_THAT(MistakesOf("- a\n"), HasSubstr("job.yaml:1:1: the job must be a map, not a list"));
  EXPECT_THAT(MistakesOf("hello"),
              HasSubstr("job.yaml:1:1: the job must be a map, not text 'hello'"));
  EXPECT_EQ(MistakesOf("name: a\n---\nname: b\n"),
            "job.yaml:3:1: a second document; expected one job per file");
  EXPECT_EQ(MistakesOf(std::string(5 << 20, ' ')), "job.yaml: larger than 4.0MiB");
}

TEST(ParseJobTest, HostileFilesAreRejectedQuickly) {
  EXPECT_THAT(MistakesOf(std::string("name: \0", 7)),
              HasSubstr("job.yaml:1:7: the control character"));
  EXPECT_THAT(MistakesOf("name: \xFF"),
              HasSubstr("job.yaml:1:7: the byte 0xff is not valid UTF-8"));
  EXPECT_THAT(MistakesOf("name: " + std::string(100'000, '[')), HasSubstr("job.yaml:1:"));
  std::string bomb = "a: &a0 [x, x]\n";
  for (int i = 1; i < 64; ++i) {
    absl::StrAppend(&bomb, "k", i, ": &a", i, " [*a", i - 1, ", *a", i - 1, "]\n");
  }
  EXPECT_THAT(MistakesOf(bomb), HasSubstr("more than 200000 values"));
  std::string unknown = kShort;
  for (int i = 0; i < 50'000; ++i) absl::StrAppend(&unknown, "rolse", i, ": 1\n");
  EXPECT_THAT(MistakesOf(unknown), HasSubstr("more mistakes"));
}

}  // namespace
}  // namespace muster::job
