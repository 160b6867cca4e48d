#include "job/task_launch.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::job {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

class TaskLaunchTest : public testing::Test {
 protected:
  TaskLaunchTest() {
    spec_.name = "mnist";
    spec_.model_dir = "/runs/m";
    AddRole("chief", {"c0:2222"});
    AddRole("worker", {"w0:2222", "w1:2223"});
    AddRole("ps", {"p0:2222", "p1:2222"});
    AddRole("evaluator", {"e0:2222"});
    context_.job_id = "mnist-1a2b";
    context_.working_dir = "/home/u/work";
    context_.trainer = "/usr/bin/muster-trainer";
    context_.train_config = "/jobs/mnist-1a2b/train.json";
    context_.run_dir = "/jobs/mnist-1a2b/run/worker-1";
    context_.socket_dir = "/jobs/mnist-1a2b/sockets";
    context_.cpus = 8;
    context_.tasks_on_host = 3;
  }

  void AddRole(const std::string& name, const std::vector<std::string>& addresses) {
    RoleSpec role;
    role.name = name;
    role.replicas = static_cast<int>(addresses.size());
    role.command = {"train"};
    spec_.roles.push_back(role);
    for (int i = 0; i < role.replicas; ++i) cluster_.Set({name, i}, addresses[i]);
  }

  RoleSpec& Role(const std::string& name) {
    for (RoleSpec& role : spec_.roles) {
      if (role.name == name) return role;
    }
    ADD_FAILURE() << name;
    return spec_.roles.front();
  }

  void KeepOnly(const std::string& name) {
    for (const cluster::TaskId& task : spec_.Tasks()) {
      if (task.role != name) cluster_ = cluster_.Without(task.role);
    }
    spec_.roles = {Role(name)};
  }

  TaskLaunch Build(const cluster::TaskId& task = {"worker", 1}) {
    absl::StatusOr<TaskLaunch> launch = BuildTaskLaunch(spec_, cluster_, task, context_);
    EXPECT_TRUE(launch.ok()) << launch.status();
    return launch.ok() ? *std::move(launch) : TaskLaunch();
  }

  // Returns the word that a real shell receives for the placeholder of a line.
  std::string ShellSees(const std::string& line) {
    Role("worker").command = {"/bin/sh", "-c", line};
    const TaskLaunch launch = Build();
    FILE* pipe = ::popen(launch.argv[2].c_str(), "r");
    std::string output;
    for (int c = ::fgetc(pipe); c != EOF; c = ::fgetc(pipe)) output.push_back(static_cast<char>(c));
    EXPECT_EQ(::pclose(pipe), 0) << launch.argv[2];
    return output;
  }

  JobSpec spec_;
  cluster::ClusterSpec cluster_;
  LaunchContext context_;
};

TEST_F(TaskLaunchTest, FillsEveryPlaceholder) {
  context_.attempt = 2;
  Role("worker").command = {"t",
                            "{role}",
                            "{index}",
                            "{port}",
                            "{host}",
                            "{address}",
                            "{ps_hosts}",
                            "{worker_hosts}",
                            "{model_dir}",
                            "{chief_hosts}",
                            "{name}/{job_id}",
                            "{rank}",
                            "{world_size}",
                            "{replicas}",
                            "--a={attempt}"};
  EXPECT_THAT(Build().argv, ElementsAre("t", "worker", "1", "2223", "w1", "w1:2223",
                                        "p0:2222,p1:2222", "w0:2222,w1:2223", "/runs/m", "c0:2222",
                                        "mnist/mnist-1a2b", "2", "3", "2", "--a=2"));
}

TEST_F(TaskLaunchTest, RolesWithoutACommand) {
  RoleSpec& role = Role("worker");
  role.command.clear();
  EXPECT_THAT(Build().argv, ElementsAre("/usr/bin/muster-trainer"));
  role.server = Server::kTrainer;
  EXPECT_THAT(Build().argv, ElementsAre("/usr/bin/muster-trainer", "serve"));
  role.server = Server::kTensorFlow;
  EXPECT_THAT(Build().argv, ElementsAre("python3", "-c", HasSubstr("train.Server(")));
  context_.tf_server = "/jobs/mnist-1a2b/tf_server.py";
  EXPECT_THAT(Build().argv, ElementsAre("python3", "/jobs/mnist-1a2b/tf_server.py"));
  role.server = Server::kNone;
  role.image = "tf:1";
  role.pod = nlohmann::json::object();
  EXPECT_THAT(Build().argv, testing::IsEmpty());
  EXPECT_EQ(DescribeCommand(role, Build()), "the entry point of tf:1");
}

TEST_F(TaskLaunchTest, ExpandsEveryListedPlaceholder) {
  EXPECT_EQ(CommandPlaceholders().size(), 16u);
  for (const std::string& name : CommandPlaceholders()) {
    Role("worker").command = {absl::StrCat("x{", name, "}")};
    EXPECT_THAT(Build().argv.front(), Not(HasSubstr("{"))) << name;
  }
}

TEST_F(TaskLaunchTest, OtherBracesStayAsTheyAre) {
  Role("worker").command = {"{}",
                            "{",
                            "}",
                            "{unknown}",
                            "{{role}}",
                            "${role}",
                            "{ role }",
                            "{\"a\": {\"b\": 1}}",
                            "awk '{print $1}'"};
  EXPECT_THAT(Build().argv, ElementsAre("{}", "{", "}", "{unknown}", "{worker}", "${role}",
                                        "{ role }", "{\"a\": {\"b\": 1}}", "awk '{print $1}'"));
}

TEST_F(TaskLaunchTest, AMillionOpenBracesCostNoMoreThanTheirLength) {
  Role("worker").command = {std::string(1'000'000, '{')};
  EXPECT_EQ(Build().argv, Role("worker").command);
}

TEST_F(TaskLaunchTest, ValuesAreNotExpandedAgain) {
  spec_.model_dir = "/runs/{role}";
  Role("worker").command = {"{model_dir}"};
  EXPECT_THAT(Build().argv, ElementsAre("/runs/{role}"));
}

TEST_F(TaskLaunchTest, TaskFlagsAreFourWords) {
  Role("worker").command = {"python", "train.py", "{task_flags}", "--x"};
  EXPECT_THAT(Build().argv,
              ElementsAre("python", "train.py", "--job_name=worker", "--task_index=1",
                          "--ps_hosts=p0:2222,p1:2222", "--worker_hosts=w0:2222,w1:2223", "--x"));
  Role("worker").command = {"/bin/sh", "-c", "python train.py {task_flags} | tee log"};
  EXPECT_EQ(Build().argv[2],
            "python train.py --job_name=worker --task_index=1 --ps_hosts=p0:2222,p1:2222 "
            "--worker_hosts=w0:2222,w1:2223 | tee log");
}

TEST_F(TaskLaunchTest, ShellLinesGetQuotedValues) {
  Role("worker").command = {"/bin/sh", "-c", "train --dir={model_dir} --index={index}"};
  EXPECT_EQ(Build().argv[2], "train --dir=/runs/m --index=1");
  spec_.model_dir = "/my runs/$HOME/`x`/it's \"q\" \\ *;";
  for (const char* line : {"printf %s {model_dir}", "printf %s \"{model_dir}\"",
                           "printf %s '{model_dir}'", "printf %s \\''{model_dir}' | cut -c 2-"}) {
    std::string seen = ShellSees(line);
    if (!seen.empty() && seen.back() == '\n') seen.pop_back();
    EXPECT_EQ(seen, spec_.model_dir) << line;
  }
}

TEST_F(TaskLaunchTest, TasksWithoutARankHaveAnEmptyOne) {
  Role("ps").command = {"/bin/sh", "-c", "serve --rank={rank} --of={world_size}"};
  EXPECT_EQ(Build({"ps", 0}).argv[2], "serve --rank='' --of=3");
}

TEST_F(TaskLaunchTest, RoleWithoutCommandRunsTheTrainer) {
  spec_.train = {{"model", "cnn"}};
  Role("worker").command.clear();
  const TaskLaunch launch = Build();
  EXPECT_THAT(launch.argv, ElementsAre("/usr/bin/muster-trainer"));
  EXPECT_THAT(launch.env, Contains(Pair("MUSTER_TRAIN_CONFIG", "/jobs/mnist-1a2b/train.json")));
}

TEST_F(TaskLaunchTest, EvaluatorIsNotInTheCluster) {
  constexpr char kCluster[] =
      R"({"cluster":{"chief":["c0:2222"],"ps":["p0:2222","p1:2222"],"worker":["w0:2222","w1:2223"]},)";
  EXPECT_EQ(Build().env["TF_CONFIG"],
            absl::StrCat(kCluster, R"("task":{"type":"worker","index":1},"model_dir":"/runs/m",)",
                         R"("environment":"cloud"})"));
  EXPECT_EQ(
      Build({"evaluator", 0}).env["TF_CONFIG"],
      absl::StrCat(kCluster, R"("task":{"type":"evaluator","index":0},"model_dir":"/runs/m",)",
                   R"("environment":"cloud"})"));
}

TEST_F(TaskLaunchTest, TfJobsListTheEvaluator) {
  for (JobFormat format : {JobFormat::kTfJobV1, JobFormat::kTfJobV1Alpha1}) {
    spec_.format = format;
    EXPECT_THAT(Build().env["TF_CONFIG"], HasSubstr(R"("evaluator":["e0:2222"])"));
  }
}

TEST_F(TaskLaunchTest, DynamicWorkersGetTheSparseForm) {
  spec_.dynamic_workers = true;
  EXPECT_THAT(Build().env["TF_CONFIG"],
              HasSubstr(R"("ps":["p0:2222","p1:2222"],"worker":{"1":"w1:2223"}})"));
  EXPECT_THAT(Build({"ps", 1}).env["TF_CONFIG"],
              HasSubstr(R"({"cluster":{"ps":{"1":"p1:2222"},"worker":{}},)"
                        R"("sparseCluster":{"ps":["p1:2222"],"worker":{}},"task")"));
  EXPECT_THAT(Build({"ps", 1}).env["TF_CONFIG"], HasSubstr(R"("environment":"cloud")"));
}

TEST_F(TaskLaunchTest, OneTaskIsLocal) {
  spec_.model_dir.clear();
  KeepOnly("chief");
  EXPECT_EQ(
      Build({"chief", 0}).env["TF_CONFIG"],
      R"({"cluster":{"chief":["c0:2222"]},"task":{"type":"chief","index":0},"environment":"local"})");
  spec_.format = JobFormat::kTfJobV1;
  EXPECT_THAT(Build({"chief", 0}).env, Not(Contains(Key("TF_CONFIG"))));
}

TEST_F(TaskLaunchTest, SetsTheVariablesOfTheTask) {
  context_.attempt = 3;
  context_.restart_count = 2;
  const TaskLaunch launch = Build();
  const std::map<std::string, std::string> expected = {
      {"MUSTER_JOB_ID", "mnist-1a2b"},
      {"MUSTER_JOB_NAME", "mnist"},
      {"MUSTER_TASK", "worker:1"},
      {"MUSTER_ROLE", "worker"},
      {"MUSTER_INDEX", "1"},
      {"MUSTER_ATTEMPT", "3"},
      {"MUSTER_PORT", "2223"},
      {"MUSTER_ADDRESS", "w1:2223"},
      {"MUSTER_MODEL_DIR", "/runs/m"},
      {"MUSTER_PROGRESS_FILE", "/jobs/mnist-1a2b/run/worker-1/progress"},
      {"MUSTER_METRICS_FILE", "/dev/stdout"},
      {"MUSTER_SOCKET_DIR", "/jobs/mnist-1a2b/sockets"},
      {"MUSTER_EVALUATORS", "1"},
      {"MUSTER_START_TIMEOUT", "60"},
      {"RANK", "2"},
      {"WORLD_SIZE", "3"},
      {"MASTER_ADDR", "c0"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "mnist-1a2b"},
      {"TORCHELASTIC_ERROR_FILE", "/jobs/mnist-1a2b/run/worker-1/error.json"},
      {"OMP_NUM_THREADS", "2"},
      {"PYTHONUNBUFFERED", "1"}};
  for (const auto& variable : expected) EXPECT_THAT(launch.env, Contains(variable));
  for (const char* absent : {"MUSTER_TRAIN_CONFIG", "MUSTER_RESUME", "MUSTER_RESUME_STEP"}) {
    EXPECT_THAT(launch.env, Not(Contains(Key(absent))));
  }
}

TEST_F(TaskLaunchTest, AJobWithoutAnEvaluatorHasZeroEvaluators) {
  cluster_ = cluster_.Without("evaluator");
  Role("evaluator").replicas = 0;
  EXPECT_THAT(Build().env, Contains(Pair("MUSTER_EVALUATORS", "0")));
  spec_.roles.pop_back();
  EXPECT_THAT(Build().env, Contains(Pair("MUSTER_EVALUATORS", "0")));
}

TEST_F(TaskLaunchTest, TasksOnSeveralMachinesShareNoSockets) {
  context_.socket_dir.clear();
  EXPECT_THAT(Build().env, Not(Contains(Key("MUSTER_SOCKET_DIR"))));
}

TEST_F(TaskLaunchTest, SetsTheResumeVariables) {
  context_.resumed = true;
  EXPECT_THAT(Build().env, Contains(Pair("MUSTER_RESUME", "1")));
  context_.resume_step = 500;
  EXPECT_THAT(Build().env, Contains(Pair("MUSTER_RESUME_STEP", "500")));
}

TEST_F(TaskLaunchTest, ThreadsAreDividedUnlessTheUserSetsThem) {
  context_.tasks_on_host = 100;
  EXPECT_EQ(Build().env["OMP_NUM_THREADS"], "1");
  spec_.env["OMP_NUM_THREADS"] = "5";
  EXPECT_EQ(Build().env["OMP_NUM_THREADS"], "5");
  spec_.env.clear();
  context_.user_set_omp = true;
  EXPECT_THAT(Build().env, Not(Contains(Key("OMP_NUM_THREADS"))));
}

TEST_F(TaskLaunchTest, UserVariablesOverrideAllButMustersOwn) {
  spec_.env = {{"A", "job"}, {"B", "job"}, {"RANK", "7"}, {"PYTHONUNBUFFERED", ""}};
  Role("worker").env = {{"B", "{role}-{index}"}, {"MUSTER_TASK", "mine"}, {"MUSTER_X", "mine"}};
  const TaskLaunch launch = Build();
  for (const auto& variable : std::map<std::string, std::string>{{"A", "job"},
                                                                 {"B", "worker-1"},
                                                                 {"RANK", "7"},
                                                                 {"PYTHONUNBUFFERED", ""},
                                                                 {"MUSTER_TASK", "worker:1"},
                                                                 {"MUSTER_X", "mine"}}) {
    EXPECT_THAT(launch.env, Contains(variable));
  }
}

TEST_F(TaskLaunchTest, WorkingDirIsResolved) {
  EXPECT_EQ(Build().working_dir, "/home/u/work");
  Role("worker").working_dir = "../code";
  EXPECT_EQ(Build().working_dir, "/home/u/code");
  Role("worker").working_dir = "/srv";
  EXPECT_EQ(Build().working_dir, "/srv");
}

TEST_F(TaskLaunchTest, AnEscapedPlaceholderDoesNotEscapeTheTextAfterIt) {
  spec_.model_dir = "/a $b";
  Role("worker").command = {"/bin/sh", "-c", "echo \\{index}\"{model_dir}\""};
  EXPECT_EQ(Build().argv.back(), "echo \\1\"/a \\$b\"");
}

TEST_F(TaskLaunchTest, OnlyTheNamedValuesDependOnTheAttempt) {
  Role("worker").command = {"train", "{task_flags}", "{attempt}"};
  TaskLaunch first = Build();
  context_.attempt = 1;
  context_.restart_count = 1;
  context_.run_dir = "/elsewhere";
  TaskLaunch second = Build();
  EXPECT_NE(first, second);
  EXPECT_NE(first.argv.back(), second.argv.back());
  for (TaskLaunch* launch : {&first, &second}) {
    launch->argv.pop_back();
    for (const char* name : {"MUSTER_ATTEMPT", "TORCHELASTIC_RESTART_COUNT",
                             "TORCHELASTIC_ERROR_FILE", "MUSTER_PROGRESS_FILE"}) {
      EXPECT_EQ(launch->env.erase(name), 1u) << name;
    }
  }
  EXPECT_EQ(first, second);
}

TEST_F(TaskLaunchTest, TaskOutsideTheJobIsAnError) {
  for (const cluster::TaskId& task : {cluster::TaskId{"worker", 2}, cluster::TaskId{"boss", 0}}) {
    const absl::Status status = BuildTaskLaunch(spec_, cluster_, task, context_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(task.ToString()));
  }
  cluster_.Set({"worker", 1}, "no-port");
  EXPECT_FALSE(BuildTaskLaunch(spec_, cluster_, {"worker", 1}, context_).ok());
}

}  // namespace
}  // namespace muster::job
