#include "cluster/tf_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The TF_CONFIG from the documentation on manual runs: a master, a ps and a worker on three
// machines.
constexpr char kByHand[] =
    R"({"cluster":{"master":["instance-1:8000"],"ps":["instance-2:8000"],"worker":["instance-3:8000"]},)"
    R"("task":{"type":"worker","index":0},"model_dir":"gs://bucket/your/path","environment":"cloud"})";

// The TF_CONFIG that the TFJob operator sets for worker 1.
constexpr char kTfJob[] =
    R"({"cluster":{"master":["distributed-mnist-master-5oz2-0:2222"],)"
    R"("ps":["distributed-mnist-ps-5oz2-0:2222"],)"
    R"("worker":["distributed-mnist-worker-5oz2-0:2222","distributed-mnist-worker-5oz2-1:2222"]},)"
    R"("task":{"type":"worker","index":1},"environment":"cloud"})";

std::string ErrorOf(absl::string_view json, absl::string_view model_dir = "") {
  const absl::StatusOr<TfConfig> config = ReadTfConfig(json, model_dir);
  if (config.ok()) return "(accepted)";
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(TfConfigTest, WritesTheBytesOfTheByHandExample) {
  TfConfig config;
  config.cluster.Set({"worker", 0}, "instance-3:8000");
  config.cluster.Set({"master", 0}, "instance-1:8000");
  config.cluster.Set({"ps", 0}, "instance-2:8000");
  config.task = TaskId{"worker", 0};
  config.model_dir = "gs://bucket/your/path";
  config.environment = "cloud";
  EXPECT_EQ(WriteTfConfig(config), kByHand);
}

TEST(TfConfigTest, WritesTheBytesOfTheTfJobExample) {
  TfConfig config;
  config.cluster.Set({"worker", 1}, "distributed-mnist-worker-5oz2-1:2222");
  config.cluster.Set({"worker", 0}, "distributed-mnist-worker-5oz2-0:2222");
  config.cluster.Set({"ps", 0}, "distributed-mnist-ps-5oz2-0:2222");
  config.cluster.Set({"master", 0}, "distributed-mnist-master-5oz2-0:2222");
  config.task = TaskId{"worker", 1};
  config.environment = "cloud";
  EXPECT_EQ(WriteTfConfig(config), kTfJob);
}

TEST(TfConfigTest, ReadsBothExamplesBack) {
  for (const char* text : {kByHand, kTfJob}) {
    const absl::StatusOr<TfConfig> config = ReadTfConfig(text);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(WriteTfConfig(*config), text);
  }
}

TEST(TfConfigTest, PartialClusterIsAlsoWrittenAsSparseCluster) {
  TfConfig config;
  config.cluster.Set({"ps", 0}, "p0:1");
  config.cluster.Set({"worker", 0}, "w0:1");
  config.task = TaskId{"worker", 0};
  config.sparse = true;
  EXPECT_EQ(WriteTfConfig(config), R"({"cluster":{"ps":["p0:1"],"worker":{"0":"w0:1"}},)"
                                   R"("sparseCluster":{"ps":["p0:1"],"worker":{"0":"w0:1"}},)"
                                   R"("task":{"type":"worker","index":0}})");
  const auto read = ReadTfConfig(
      R"({"sparseCluster":{"worker":{"3":"w3:1"},"ps":["p0:1"]},"task":{"type":"worker","index":3}})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cluster.AddressOf({"worker", 3}), "w3:1");
  EXPECT_EQ(read->cluster.AddressOf({"ps", 0}), "p0:1");
}

TEST(TfConfigTest, RolesWithGapsUseTheSparseForm) {
  TfConfig config;
  config.cluster.Set({"worker", 1}, "w1:2222");
  config.cluster.Set({"worker", 10}, "w10:2222");
  config.cluster.Set({"ps", 0}, "p0:2222");
  config.task = TaskId{"worker", 10};
  config.environment = "cloud";
  const std::string text = WriteTfConfig(config);
  EXPECT_EQ(text, R"({"cluster":{"ps":["p0:2222"],"worker":{"1":"w1:2222","10":"w10:2222"}},)"
                  R"("task":{"type":"worker","index":10},"environment":"cloud"})");
  const absl::StatusOr<TfConfig> read = ReadTfConfig(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, config);
}

TEST(TfConfigTest, NoTaskTypeIsASingleLocalProcess) {
  for (const char* text : {"", "  \n", "{}", R"({"task":{}})", R"({"task":null,"cluster":null})",
                           R"({"task":{"index":3}})", R"({"task":{"type":""}})"}) {
    const absl::StatusOr<TfConfig> config = ReadTfConfig(text);
    ASSERT_TRUE(config.ok()) << text << ": " << config.status();
    EXPECT_FALSE(config->task.has_value()) << text;
    EXPECT_EQ(config->environment, "local");
    EXPECT_TRUE(IsChief(*config));
  }
}

TEST(TfConfigTest, IndexDefaultsToZeroAndMayBeQuoted) {
  const std::string cluster = R"({"cluster":{"worker":["a:1","b:2"]},"task":)";
  EXPECT_EQ(ReadTfConfig(cluster + R"({"type":"worker"}})")->task, (TaskId{"worker", 0}));
  EXPECT_EQ(ReadTfConfig(cluster + R"({"type":"worker","index":"1"}})")->task,
            (TaskId{"worker", 1}));
}

TEST(TfConfigTest, OneProcessNeedsNoCluster) {
  const absl::StatusOr<TfConfig> config = ReadTfConfig(R"({"task":{"type":"master","index":0}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(IsChief(*config));
  EXPECT_THAT(ErrorOf(R"({"task":{"type":"ps","index":0}})"), HasSubstr("no tasks"));
  EXPECT_THAT(ErrorOf(R"({"task":{"type":"worker","index":1}})"), HasSubstr("worker:1"));
}

TEST(TfConfigTest, EvaluatorIsNeverExpectedInTheCluster) {
  const absl::StatusOr<TfConfig> config =
      ReadTfConfig(R"({"cluster":{"chief":["a:1"]},"task":{"type":"evaluator","index":0}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(IsChief(*config));
}

TEST(TfConfigTest, KeysThatOthersAddAreIgnored) {
  const absl::StatusOr<TfConfig> config = ReadTfConfig(
      R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":0,"trial":"1"},)"
      R"("rpc_layer":"grpc","job":{"scale_tier":"BASIC"}})");
  EXPECT_TRUE(config.ok()) << config.status();
}

TEST(TfConfigTest, TaskMustBeInTheCluster) {
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":["a:1"],"ps":["b:1"]},"task":{"type":"chief"}})"),
            "TF_CONFIG: the task chief:0 is not in the cluster, which has the roles ps, worker");
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":2}})"),
            "TF_CONFIG: the cluster has no worker:2; role worker has 2 tasks, 0 to 1");
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":{"1":"a:1"}},"task":{"type":"worker"}})"),
            "TF_CONFIG: the cluster has no worker:0; role worker has only 1");
}

TEST(TfConfigTest, ModelDirOfTheConfigurationMustAgree) {
  EXPECT_EQ(ReadTfConfig("{}", "/m")->model_dir, "/m");
  EXPECT_EQ(ReadTfConfig(R"({"model_dir":"/m"})")->model_dir, "/m");
  EXPECT_EQ(ReadTfConfig(R"({"model_dir":"/m"})", "/m")->model_dir, "/m");
  EXPECT_THAT(ErrorOf(R"({"model_dir":"gs://a/b"})", "/m"),
              AllOf(HasSubstr("\"gs://a/b\""), HasSubstr("\"/m\"")));
}

TEST(TfConfigTest, ErrorsNameTheKeyAndTheExpectedForm) {
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":["a:1",5]}})"),
            "TF_CONFIG: cluster.worker[1] must be \"host:port\", got 5");
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":["a"]}})"),
            "TF_CONFIG: cluster.worker[0] must be \"host:port\", got \"a\"");
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":{"1":[]}}})"),
            "TF_CONFIG: cluster.worker[\"1\"] must be \"host:port\", got a list");
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":{"-1":"a:1"}}})"),
            "TF_CONFIG: cluster.worker: keys must be task indices, got \"-1\"");
  EXPECT_EQ(ErrorOf(R"({"cluster":{"worker":"a:1"}})"),
            "TF_CONFIG: cluster.worker must be a list of \"host:port\" or an object of index to "
            "\"host:port\", got \"a:1\"");
  EXPECT_THAT(ErrorOf(R"({"cluster":{"":["a:1"]}})"), HasSubstr("without a name"));
  EXPECT_EQ(ErrorOf(R"({"cluster":[]})"),
            "TF_CONFIG: cluster must be an object of role to addresses, got a list");
  EXPECT_EQ(ErrorOf(R"({"task":"worker"})"),
            "TF_CONFIG: task must be an object with type and index, got \"worker\"");
  EXPECT_EQ(ErrorOf(R"({"task":{"type":7}})"), "TF_CONFIG: task.type must be a role's name, got 7");
  EXPECT_EQ(ErrorOf(R"({"model_dir":7})"), "TF_CONFIG: model_dir must be a path or URL, got 7");
  EXPECT_EQ(ErrorOf(R"({"environment":"claud"})"),
            "TF_CONFIG: environment must be \"local\" or \"cloud\", got \"claud\"");
  EXPECT_EQ(ErrorOf("[1]"), "TF_CONFIG must be an object with cluster and task, got a list");
  EXPECT_EQ(ErrorOf("{'a': 1}"), "TF_CONFIG is not valid JSON: \"{'a': 1}\"");
}

TEST(TfConfigTest, InvalidIndicesAreErrors) {
  for (const char* index : {"-1", "1e99", "1.5", "1e400", "99999999999999999999999", "2147483648",
                            "true", "[]", "\"x\"", "\"\"", "\"-1\""}) {
    const std::string text =
        std::string(R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":)") + index +
        "}}";
    EXPECT_THAT(ErrorOf(text), HasSubstr("TF_CONFIG")) << index;
  }
}

TEST(TfConfigTest, HostileInputIsAnError) {
  constexpr size_t kDeep = 200'000;
  EXPECT_THAT(ErrorOf(std::string(kDeep, '[')), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(std::string(kDeep, '[') + std::string(kDeep, ']')),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(R"({"cluster":{"worker":[)" + std::string(kDeep, '[') +
                      std::string(kDeep, ']') + "]}}"),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf("{\"cluster\":\"\xff\xfe\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(R"({"cluster":{"worker":["a\u0000b:1"]}})"), HasSubstr("host:port"));
  EXPECT_LT(ErrorOf(R"({"environment":")" + std::string(100'000, 'x') + "\"}").size(), 300);
}

TEST(TfConfigTest, WritingReplacesInvalidUtf8) {
  TfConfig config;
  config.model_dir = "/m\xff";
  EXPECT_EQ(WriteTfConfig(config), "{\"cluster\":{},\"model_dir\":\"/m\xEF\xBF\xBD\"}");
}

TEST(TfConfigTest, ChiefIsTheMasterElseTheFirstWorker) {
  const auto leads = [](const char* cluster, const TaskId& task) {
    absl::StatusOr<TfConfig> config = ReadTfConfig(cluster);
    EXPECT_TRUE(config.ok()) << config.status();
    config->task = task;
    return IsChief(*config);
  };
  constexpr char kWithChief[] = R"({"cluster":{"chief":["a:1"],"worker":["b:1"]}})";
  constexpr char kWithMaster[] = R"({"cluster":{"master":["a:1"],"worker":["b:1"]}})";
  constexpr char kWorkers[] = R"({"cluster":{"worker":["a:1","b:1"],"ps":["c:1"]}})";
  EXPECT_TRUE(leads(kWithChief, {"chief", 0}));
  EXPECT_FALSE(leads(kWithChief, {"worker", 0}));
  EXPECT_TRUE(leads(kWithMaster, {"master", 0}));
  EXPECT_FALSE(leads(kWithMaster, {"worker", 0}));
  EXPECT_TRUE(leads(kWorkers, {"worker", 0}));
  EXPECT_FALSE(leads(kWorkers, {"worker", 1}));
  EXPECT_FALSE(leads(kWorkers, {"ps", 0}));
}

TEST(TaskFlagsTest, WritesTheFourFlags) {
  ClusterSpec cluster;
  cluster.Set({"ps", 0}, "p0:2222");
  cluster.Set({"ps", 1}, "p1:2222");
  cluster.Set({"worker", 0}, "w0:2222");
  EXPECT_THAT(WriteTaskFlags(cluster, {"ps", 1}),
              ElementsAre("--job_name=ps", "--task_index=1", "--ps_hosts=p0:2222,p1:2222",
                          "--worker_hosts=w0:2222"));
}

TEST(TaskFlagsTest, ReadsThemToTheSameCluster) {
  const absl::StatusOr<TfConfig> config =
      ReadTaskFlags({"worker", 1, "p0:2222", "w0:2222,w1:2222"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task, (TaskId{"worker", 1}));
  EXPECT_EQ(config->cluster.Hosts("worker"), "w0:2222,w1:2222");
  EXPECT_EQ(config->environment, "cloud");
  EXPECT_FALSE(IsChief(*config));
}

TEST(TaskFlagsTest, NoFlagsAreASingleLocalProcess) {
  const absl::StatusOr<TfConfig> config = ReadTaskFlags({});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->environment, "local");
  EXPECT_TRUE(IsChief(*config));
}

TEST(TaskFlagsTest, ErrorsNameTheFlag) {
  const auto error = [](const TaskFlags& flags) {
    return std::string(ReadTaskFlags(flags).status().message());
  };
  EXPECT_EQ(error({"worker", 0, "p0:2222,", "w0:1"}),
            "--ps_hosts must be host:port,host:port,…; entry 1 is \"\"");
  EXPECT_THAT(error({"worker", -1, "", "w0:1"}), HasSubstr("--task_index must be 0 or more"));
  EXPECT_THAT(error({"worker", 1, "", "w0:1"}), HasSubstr("has no worker:1"));
  EXPECT_THAT(error({"boss", 0, "", "w0:1"}), HasSubstr("the roles worker"));
  EXPECT_THAT(error({"", 0, "", "w0:1"}), HasSubstr("need --job_name"));
}

}  // namespace
}  // namespace muster::cluster
