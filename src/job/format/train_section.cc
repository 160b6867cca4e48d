#include "job/format/train_section.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codec/map_reader.h"
#include "job/format/data_section.h"
#include "job/format/parse.h"
#include "job/format/train_fields.h"
#include "job/job_rules.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Mark;
using codec::Node;
using Json = nlohmann::json;

constexpr char kEvaluateOff[] = "off";

class TrainReader {
 public:
  TrainReader(const Node& node, absl::string_view working_dir, Diagnostics& diagnostics)
      : train_(node, "train", diagnostics), working_dir_(working_dir), diagnostics_(diagnostics) {}

  Json Read() {
    train_.Require("model", "the name of a built-in model, or a TorchScript file");
    train_.Require("data", "a map such as {format: mnist, path: data/mnist}");
    train_.Require("steps", "the number of training steps of the whole job");
    Json result = ReadFields(train_, TrainFields());
    if (const auto model = train_.String("model")) result["model"] = ResolveModel(*model);
    AddSection("data", DataFields(), result);
    CheckData(result);
    result["optimizer"] = Json::object();
    result["checkpoint"] = Json::object();
    result["summary"] = Json::object();
    AddSection("optimizer", OptimizerFields(), result);
    AddSection("schedule", ScheduleFields(), result);
    AddSection("checkpoint", CheckpointFields(), result);
    AddEvaluate(result);
    AddSection("summary", SummaryFields(), result);
    AddExport(result);
    AddEarlyStopping(result);
    train_.Finish();
    CheckEvery("checkpoint", result);
    CheckEvery("evaluate", result);
    CheckExport(result);
    CompleteCheckpoint(result["checkpoint"]);
    CheckStrategyKeys(result);
    CheckOptimizer(result);
    CheckSchedule(result);
    return result;
  }

 private:
  Json ReadFields(MapReader& reader, const Fields& fields) {
    Json result = Json::object();
    for (const Field& field : fields) {
      Json value = ReadField(reader, field);
      if (value.is_null()) value = field.fallback;
      if (!value.is_null()) result[field.key] = std::move(value);
    }
    return result;
  }

  Json ReadField(MapReader& reader, const Field& field) {
    const auto to_json = [](const auto& value) { return value ? Json(*value) : Json(); };
    switch (field.kind) {
      case Field::Kind::kText:
        return to_json(reader.String(field.key));
      case Field::Kind::kPath:
        return ReadPath(reader, field.key);
      case Field::Kind::kPaths:
        return IsMap(reader, field)
                   ? ReadSplitPaths(*reader.Find(field.key), working_dir_, diagnostics_)
                   : ReadPath(reader, field.key);
      case Field::Kind::kFeatures:
        if (IsMap(reader, field)) return ReadRecordFeatures(*reader.Find(field.key), diagnostics_);
        [[fallthrough]];
      case Field::Kind::kInt:
        return to_json(reader.Int(field.key, static_cast<int64_t>(field.min),
                                  static_cast<int64_t>(field.max)));
      case Field::Kind::kSizes:
        return ReadSizes(reader, field.key, static_cast<int64_t>(field.max), diagnostics_);
      case Field::Kind::kNumber:
        return to_json(reader.Number(field.key, field.min, field.max));
      case Field::Kind::kBool:
        return to_json(reader.Bool(field.key));
      case Field::Kind::kChoice:
        return to_json(reader.Choice(field.key, field.choices));
      case Field::Kind::kChoices:
        return reader.Find(field.key) == nullptr
                   ? Json()
                   : Json(reader.ChoiceList(field.key, field.choices));
    }
    return {};
  }

  static bool IsMap(MapReader& reader, const Field& field) {
    const Node* node = reader.Find(field.key);
    return node != nullptr && node->kind == Node::Kind::kMap;
  }

  Json ReadPath(MapReader& reader, const char* key) {
    const auto path = reader.String(key);
    if (!path) return {};
    return ResolveStorage(*path, working_dir_, absl::StrCat("'", key, "' of ", reader.what()),
                          reader.Find(key)->mark, diagnostics_);
  }

  // Reads a section if the file has it, or if `result` has an entry for it, which requests its
  // defaults.
  void AddSection(const char* key, const Fields& fields, Json& result) {
    static const Node kEmpty;
    const Node* node = train_.Find(key);
    if (node == nullptr && !result.contains(key)) return;
    MapReader reader(node != nullptr ? *node : kEmpty, absl::StrCat("'", key, "' of train"),
                     diagnostics_);
    result[key] = ReadFields(reader, fields);
    reader.Finish();
  }

  // `evaluate: off` turns evaluations off. A section without keys turns them on, with defaults.
  void AddEvaluate(Json& result) {
    const Node* node = train_.Find("evaluate");
    if (node == nullptr || node->kind != Node::Kind::kScalar) {
      AddSection("evaluate", EvaluateFields(), result);
    } else if (node->scalar == kEvaluateOff || codec::AsBool(*node) == false) {
      result["evaluate"] = kEvaluateOff;
    } else {
      diagnostics_.Add(node->mark, absl::StrCat("'evaluate' of train must be a map or off, not ",
                                                Describe(*node)));
    }
  }

  // `export: best` is short for `export: {when: best}`.
  void AddExport(Json& result) {
    const Node* node = train_.Find("export");
    if (node == nullptr || node->kind != Node::Kind::kScalar) {
      AddSection("export", ExportFields(), result);
    } else if (const auto when = train_.Choice("export", ExportFields()[0].choices)) {
      result["export"] = Json::object();
      for (const Field& field : ExportFields()) {
        if (!field.fallback.is_null()) result["export"][field.key] = field.fallback;
      }
      result["export"]["when"] = *when;
    }
  }

  void AddEarlyStopping(Json& result) {
    AddSection("early_stopping", EarlyStoppingFields(), result);
    const Node* node = train_.Find("early_stopping");
    if (node == nullptr) return;
    if (node->kind != Node::Kind::kMap && node->kind != Node::Kind::kNull) return;
    MapReader(*node, "'early_stopping' of train", diagnostics_)
        .Require("patience", "the steps without improvement after which the job ends");
  }

  std::string ResolveModel(const std::string& model) {
    const bool is_file = absl::StrContains(model, "/") || absl::EndsWith(model, ".pt") ||
                         absl::EndsWith(model, ".pth");
    if (!is_file) return model;
    return ResolveStorage(model, working_dir_, "'model' of train", train_.Find("model")->mark,
                          diagnostics_);
  }

  void CheckData(const Json& result) {
    const Node* node = train_.Find("data");
    if (node == nullptr) return;
    if (node->kind != Node::Kind::kMap && node->kind != Node::Kind::kNull) return;
    MapReader data(*node, "'data' of train", diagnostics_);
    data.Require("format", "mnist | idx | tfrecord | synthetic");
    const Json& section = result["data"];
    const std::string format = section.value("format", "");
    if (format.empty()) return;
    RejectForeignKeys("data", section, FormatKeys(), "format", "");
    if (format == "synthetic")
      RejectForeignKeys("data", section, SyntheticKeys(), "kind", "images");
    if (format != "synthetic") data.Require("path", "the location of the data");
    CheckDataSection(*node, section, diagnostics_);
  }

  void CheckOptimizer(const Json& result) {
    const Json& section = result["optimizer"];
    RejectForeignKeys("optimizer", section, OptimizerKeys(), "type", "sgd");
    if (!section.value("nesterov", false) || section.value("momentum", 0.0) > 0) return;
    if (section["type"] != "sgd") return;
    diagnostics_.Add(
        train_.Find("optimizer")->mark,
        "'optimizer' of train has 'nesterov: true' without 'momentum'; add, for example, "
        "'momentum: 0.9'");
  }

  void CheckSchedule(const Json& result) {
    if (!result.contains("schedule")) return;
    const Json& section = result["schedule"];
    RejectForeignKeys("schedule", section, ScheduleKeys(), "type", "constant");
    if (section["type"] != "step" || section.contains("decay_steps")) return;
    if (train_.Find("schedule")->Find("decay_steps") != nullptr) return;  // reported already
    diagnostics_.Add(train_.Find("schedule")->mark,
                     "'schedule' of train lacks 'decay_steps'; expected the steps after which "
                     "'type: step' lowers the rate");
  }

  // Reports the keys of section `name` that belong to another value of its key `selector`.
  void RejectForeignKeys(const char* name, const Json& section, const Owners& owners,
                         const char* selector, const char* fallback) {
    const std::string actual = section.value(selector, fallback);
    const Node* node = train_.Find(name);
    const Node* chosen = node == nullptr ? nullptr : node->Find(selector);
    if (chosen != nullptr && chosen->scalar != actual) return;  // reported already
    for (const auto& [key, kinds] : owners) {
      if (std::find(kinds.begin(), kinds.end(), actual) != kinds.end()) continue;
      RejectKey(name, section, key, absl::StrCat(selector, ": ", absl::StrJoin(kinds, " | ")),
                actual);
    }
  }

  // Reports `key` of section `name` if it is set: it belongs to `owner`, not to `actual`.
  void RejectKey(const char* name, const Json& section, const std::string& key,
                 absl::string_view owner, absl::string_view actual) {
    if (!section.contains(key)) return;
    diagnostics_.Add(train_.Find(name)->Find(key)->mark,
                     absl::StrCat("'", key, "' of '", name, "' of train belongs to '", owner,
                                  "', not to ", actual, "; remove it"));
  }

  void CheckEvery(const char* key, Json& result) {
    if (!result.contains(key)) return;
    Json& section = result[key];
    if (section.contains("every_steps") && section.contains("every_secs")) {
      diagnostics_.Add(train_.Find(key)->mark,
                       absl::StrCat("'", key,
                                    "' of train has both 'every_steps' and 'every_secs'; "
                                    "keep one of them"));
    }
  }

  // Models are exported by evaluations.
  void CheckExport(const Json& result) {
    if (!result.contains("export") || !IsEvaluationOff(result)) return;
    diagnostics_.Add(train_.Find("export")->mark,
                     "'export' of train needs evaluations, and 'evaluate' is off; remove one of "
                     "them, or export later with `muster checkpoint export`");
  }

  // By default, a checkpoint is saved every ten minutes.
  static void CompleteCheckpoint(Json& checkpoint) {
    if (checkpoint.contains("every_steps") || checkpoint.contains("every_secs")) return;
    checkpoint["every_secs"] = 600;
  }

  void CheckStrategyKeys(const Json& result) {
    const auto needs = [&](const char* key, const char* strategy) {
      if (!result.contains(key) || result.value("strategy", "") == strategy) return;
      diagnostics_.Add(train_.Find(key)->mark,
                       absl::StrCat("'", key, "' of train needs 'strategy: ", strategy, "'"));
    };
    needs("staleness", "bounded");
    needs("backup_tasks", "sync");
  }

  MapReader train_;
  absl::string_view working_dir_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool IsTrainerRole(absl::string_view role) {
  return IsChiefRole(role) || IsServiceRole(role) || role == "worker";
}

bool IsEvaluationOff(const nlohmann::json& train) {
  return train.is_object() && train.contains("evaluate") && train["evaluate"] == kEvaluateOff;
}

std::string EvaluationSplit(const nlohmann::json& train) {
  const auto section = train.value("evaluate", nlohmann::json());
  return section.is_object() ? section.value("split", "test") : "test";
}

nlohmann::json ReadTrain(const Node& node, absl::string_view working_dir,
                         Diagnostics& diagnostics) {
  return TrainReader(node, working_dir, diagnostics).Read();
}

void FitTrainToRoles(JobSpec& spec, Mark mark, Diagnostics& diagnostics) {
  int servers = 0;
  int trainers = 0;
  for (const RoleSpec& role : spec.roles) {
    if (role.command.empty() && role.ready == Readiness::kListening) {
      diagnostics.Add(mark, absl::StrCat("role '", role.name,
                                         "' has 'ready: listening', but the built-in trainer need "
                                         "not listen on its port; remove 'ready'"));
    }
    if (role.name == "evaluator" && role.replicas > 0 && role.command.empty() &&
        IsEvaluationOff(spec.train)) {
      diagnostics.Add(mark,
                      "'evaluate' of train is off, so the role 'evaluator' has nothing to do; "
                      "remove one of them");
    }
    if (role.name == "ps") servers += role.replicas;
    if (!IsServiceRole(role.name)) trainers += role.replicas;
  }
  if (!spec.train.contains("strategy")) {
    spec.train["strategy"] = servers > 0 ? "sync" : "allreduce";
    return;
  }
  const auto strategy = spec.train["strategy"].get<std::string>();
  if (strategy == "allreduce" && servers > 0) {
    diagnostics.Add(mark,
                    "'strategy: allreduce' does not use ps tasks; remove the role 'ps' or "
                    "choose sync, async or bounded");
  } else if (strategy != "allreduce" && servers == 0 && trainers > 1) {
    diagnostics.Add(mark, absl::StrCat("'strategy: ", strategy,
                                       "' needs ps tasks; add a role 'ps' or choose allreduce"));
  }
}

}  // namespace muster::job
