#include "job/format/native_format.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "codec/map_reader.h"
#include "job/command.h"
#include "job/enum_names.h"
#include "job/format/expand.h"
#include "job/format/hosts_section.h"
#include "job/format/kubernetes_section.h"
#include "job/format/policies_section.h"
#include "job/format/train_section.h"
#include "job/job_rules.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::Key;
using codec::MapReader;
using codec::Mark;
using codec::Node;

class NativeReader {
 public:
  NativeReader(const Node& document, const ParseJobOptions& options, Diagnostics& diagnostics)
      : job_(document, "the job", diagnostics), options_(options), diagnostics_(diagnostics) {}

  // The order matters: `train` determines the default of model_dir, commands refer to model_dir,
  // roles inherit from the defaults, and the train section and the hosts are checked against the
  // roles.
  JobSpec Read() {
    ReadName();
    train_ = job_.Find("train");
    ReadModelDir();
    spec_.env = ReadEnv(job_);
    ReadDefaults();
    ReadRoles();
    ReadTrainSection();
    ReadNotebook();
    if (const Node* node = job_.Find("kubernetes")) {
      spec_.kubernetes = ReadKubernetes(*node, spec_.kubernetes_namespace, diagnostics_);
    }
    if (const Node* node = job_.Find("hosts")) {
      spec_.hosts = ReadHosts(*node, options_.working_dir, spec_, diagnostics_);
    }
    job_.Finish();  // reports unknown keys, so it follows all reads
    if (has_roles_) {
      CheckRoles(spec_, places_, diagnostics_);
      CheckSuccess();
    }
    return std::move(spec_);
  }

 private:
  void ReadName() {
    job_.Require("name", kNameRule);
    if (const auto name = job_.String("name")) {
      spec_.name = *name;
      CheckJobName(*name, job_.Find("name")->mark, diagnostics_);
    }
  }

  void ReadModelDir() {
    if (const auto path = job_.String("model_dir")) {
      // A program of the user's may support storages that Muster does not.
      const Schemes schemes = train_ == nullptr ? Schemes::kAny : Schemes::kSupported;
      spec_.model_dir = ResolveStorage(*path, options_.working_dir, "'model_dir'",
                                       job_.Find("model_dir")->mark, diagnostics_, schemes);
      CheckModelDirPlaceholders(*path, job_.Find("model_dir")->mark, diagnostics_);
    } else if (train_ != nullptr) {
      spec_.model_dir =
          base::AbsolutePath(base::JoinPath("runs", spec_.name), options_.working_dir);
    }
    // An invalid model_dir counts as present, so that its uses do not cause further messages.
    has_model_dir_ = train_ != nullptr || job_.Find("model_dir") != nullptr;
  }

  std::map<std::string, std::string> ReadEnv(MapReader& reader) {
    const Node* node = reader.Find("env");
    if (node == nullptr) return {};
    for (const auto& [name, value] : node->entries) {
      CheckEnvName(name.name, name.mark, diagnostics_);
      CheckPlaceholders(value.scalar, has_model_dir_, value.mark, diagnostics_);
    }
    return reader.StringMap("env");
  }

  // Reads the defaults of roles, and the policies.
  void ReadDefaults() {
    defaults_.command = ReadCommand(job_, has_model_dir_, diagnostics_);
    defaults_.working_dir = job_.String("working_dir").value_or("");
    defaults_.image = job_.String("image").value_or("");
    if (train_ != nullptr && job_.Find("command") != nullptr) {
      diagnostics_.Add(
          job_.Find("command")->mark,
          "'command' and 'train' both set the program of every task; keep one of them, or "
          "move 'command' into the roles that need it");
    }
    if (const Node* node = job_.Find("policies")) {
      const PoliciesSection section = ReadPolicies(*node, diagnostics_);
      spec_.policies = section.policies;
      has_success_ = section.has_success;
      defaults_.restart = section.restart.value_or(defaults_.restart);
    }
  }

  void ReadRoles() {
    constexpr char kExpected[] = "a map of roles such as {chief: {}, worker: {replicas: 2}}";
    const Node* node = job_.Find("roles");
    places_.all = node != nullptr ? node->mark : job_.mark();
    const bool absent = node == nullptr || node->kind == Node::Kind::kNull;
    if (absent && train_ != nullptr) {
      // A job with only a train section runs one task of the built-in trainer.
      spec_.roles.push_back(defaults_);
      spec_.roles.back().name = "chief";
      places_.each.push_back(places_.all);
      has_roles_ = true;
      return;
    }
    if (absent) {
      diagnostics_.Add(places_.all, absl::StrCat("the job lacks 'roles'; expected ", kExpected,
                                                 ", or a 'train' section"));
      return;
    }
    if (node->kind != Node::Kind::kMap) {
      diagnostics_.Add(node->mark,
                       absl::StrCat("'roles' must be ", kExpected, ", not ", Describe(*node)));
      return;
    }
    has_roles_ = true;
    for (const auto& [key, role] : node->entries) ReadRole(key, role);
  }

  void ReadRole(const Key& key, const Node& node) {
    CheckRoleName(key.name, key.mark, diagnostics_);
    places_.each.push_back(key.mark);
    Node expanded;  // `worker: 2` is short for `worker: {replicas: 2}`
    if (AsInt(node)) {
      expanded = {.kind = Node::Kind::kMap, .mark = node.mark};
      expanded.entries.push_back({Key{"replicas", node.mark}, node});
    }
    MapReader reader(AsInt(node) ? expanded : node, absl::StrCat("role ", codec::Quoted(key.name)),
                     diagnostics_);
    RoleSpec role = defaults_;
    role.name = key.name;
    role.replicas = static_cast<int>(reader.Int("replicas", 0, kMaxReplicas).value_or(1));
    ReadProcess(reader, role);
    CheckHasCommand(reader, role, key.mark);
    ReadPlacement(reader, role);
    reader.Finish();
    spec_.roles.push_back(std::move(role));
  }

  void ReadProcess(MapReader& reader, RoleSpec& role) {
    if (reader.Find("command") != nullptr) {
      role.command = ReadCommand(reader, has_model_dir_, diagnostics_);
    }
    role.env = ReadEnv(reader);
    role.working_dir = reader.String("working_dir").value_or(role.working_dir);
    if (const auto restart = reader.Choice("restart", NamesOf<RestartPolicy>())) {
      role.restart = *FromName<RestartPolicy>(*restart);
    }
    if (const auto ready = reader.Choice("ready", NamesOf<Readiness>())) {
      role.ready = *FromName<Readiness>(*ready);
    }
  }

  void CheckHasCommand(MapReader& reader, const RoleSpec& role, Mark mark) {
    if (!role.command.empty() || reader.Find("command") != nullptr ||
        job_.Find("command") != nullptr) {
      return;
    }
    if (train_ == nullptr) {
      diagnostics_.Add(mark, absl::StrCat(reader.what(),
                                          " has no 'command'; expected one here or for the whole "
                                          "job, or a 'train' section"));
    } else if (!IsTrainerRole(role.name)) {
      diagnostics_.Add(mark, absl::StrCat(reader.what(),
                                          " is not a role of the built-in trainer (chief, master, "
                                          "worker, ps, evaluator); expected a 'command'"));
    }
  }

  void ReadPlacement(MapReader& reader, RoleSpec& role) {
    if (const auto port = reader.Int("port", 1, kLastPort)) role.port = static_cast<int>(*port);
    role.addresses = reader.StringList("addresses");
    role.image = reader.String("image").value_or(role.image);
    if (const Node* node = reader.Find("resources")) {
      role.resources = ReadResources(*node, absl::StrCat("resources of ", reader.what()));
    }
    if (const Node* node = reader.Find("kubernetes")) {
      role.kubernetes =
          ReadPodFragments(*node, absl::StrCat("kubernetes of ", reader.what()), diagnostics_);
    }
  }

  Resources ReadResources(const Node& node, std::string what) {
    constexpr double kMaxCpus = 4096;
    constexpr int64_t kMaxGpus = 1024;
    Resources resources;
    MapReader reader(node, std::move(what), diagnostics_);
    resources.cpus = reader.Number("cpus", 0, kMaxCpus);
    resources.memory_bytes = reader.Bytes("memory");
    if (const auto gpus = reader.Int("gpus", 0, kMaxGpus)) resources.gpus = static_cast<int>(*gpus);
    reader.Finish();
    return resources;
  }

  void ReadTrainSection() {
    if (train_ == nullptr) return;
    spec_.train = ReadTrain(*train_, options_.working_dir, diagnostics_);
    FitTrainToRoles(spec_, train_->mark, diagnostics_);
  }

  void ReadNotebook() {
    const Node* node = job_.Find("notebook");
    if (node == nullptr) return;
    MapReader reader(*node, "notebook", diagnostics_);
    spec_.notebook = nlohmann::json::object();
    if (const auto password = reader.String("password")) spec_.notebook["password"] = *password;
    if (const auto port = reader.Int("port", 1, kLastPort)) spec_.notebook["port"] = *port;
    reader.Finish();
  }

  void CheckSuccess() {
    const auto leads = [](const RoleSpec& role) {
      return IsChiefRole(role.name) && role.replicas > 0;
    };
    if (!has_success_) {
      const bool has_chief = std::any_of(spec_.roles.begin(), spec_.roles.end(), leads);
      spec_.policies.success = has_chief ? SuccessPolicy::kChief : SuccessPolicy::kAllWorkers;
    } else if (spec_.policies.success == SuccessPolicy::kChief && !ChiefTask(spec_)) {
      diagnostics_.Add(
          job_.Find("policies")->mark,
          "'success: chief' needs a role 'chief', 'master' or 'worker'; expected one of "
          "them, or success: all_workers");
    }
  }

  MapReader job_;
  const ParseJobOptions& options_;
  Diagnostics& diagnostics_;
  const Node* train_ = nullptr;
  bool has_model_dir_ = false;
  bool has_success_ = false;
  bool has_roles_ = false;  // `roles` could be read, so that the rules between roles apply
  RoleSpec defaults_;
  RolePlaces places_;
  JobSpec spec_;
};

}  // namespace

JobSpec ReadNativeJob(const Node& document, const ParseJobOptions& options,
                      Diagnostics& diagnostics) {
  Node expanded = document;
  ExpandPathsAndEnv(options.variables, expanded, diagnostics);
  return NativeReader(expanded, options, diagnostics).Read();
}

}  // namespace muster::job
