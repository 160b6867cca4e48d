// muster checkpoint: lists, inspects, verifies and exports checkpoints.
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "checkpoint/format.h"
#include "checkpoint/reader.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"
#include "checkpoint/verify.h"
#include "cli/checkpoint/target.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/terminal/print_json.h"
#include "nlohmann/json.hpp"
#include "storage/storage.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;
using nlohmann::ordered_json;

struct CheckpointOptions {
  std::string path;
  std::string which = "latest";
  std::string to;
  bool json = false;
  bool force = false;
};

absl::Status NoCheckpoints(absl::string_view model_dir) {
  return absl::NotFoundError(absl::StrCat(model_dir, ": has no checkpoints"));
}

// Returns the folder that `which` selects, complete or not.
absl::StatusOr<std::string> FolderOf(const std::string& model_dir, const std::string& which) {
  const auto entries = checkpoint::List(model_dir);
  if (entries.empty()) return NoCheckpoints(model_dir);
  MUSTER_ASSIGN_OR_RETURN(const std::optional<int64_t> step, checkpoint::StepOf(model_dir, which));
  std::vector<std::string> usable;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->status.ok() && !step) return entry->folder;
    const bool whole =
        checkpoint::ParseStepFolder(fs::path(entry->folder).filename().string()) == entry->step;
    if (step && whole && entry->step == *step) return entry->folder;
    if (entry->status.ok()) usable.push_back(absl::StrCat(entry->step));
  }
  if (!step) return entries.back().status;
  return absl::NotFoundError(absl::StrCat(model_dir, ": has no checkpoint of step ", *step,
                                          "; available: ", absl::StrJoin(usable, ", ")));
}

absl::StatusOr<Checkpoint> OpenTarget(const CheckpointTarget& target, const std::string& which,
                                      bool verify) {
  MUSTER_RETURN_IF_ERROR(target.Fetch(which));
  if (target.kind == CheckpointTarget::Kind::kCheckpoint)
    return Checkpoint::Open(target.path, verify);
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, FolderOf(target.path, which));
  return Checkpoint::Open(folder, verify);
}

std::string StateOf(const absl::Status& status) {
  if (status.ok()) return "ok";
  if (absl::IsUnavailable(status)) return "partial";
  return absl::IsFailedPrecondition(status) ? "newer format" : "damaged";
}

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

ordered_json EntryToJson(const checkpoint::Entry& entry, bool best) {
  const bool known = entry.written != absl::InfinitePast();
  return {{"step", entry.step},
          {"folder", entry.folder},
          {"bytes", known ? ordered_json(entry.bytes) : ordered_json()},
          {"written", known ? ordered_json(Rfc3339(entry.written)) : ordered_json()},
          {"state", StateOf(entry.status)},
          {"final", entry.final},
          {"best", best},
          {"reason",
           entry.status.ok() ? ordered_json() : ordered_json(std::string(entry.status.message()))}};
}

absl::StatusOr<int> List(Context& context, const CheckpointOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const CheckpointTarget target, FindCheckpoint(context, options.path));
  if (target.kind != CheckpointTarget::Kind::kModelDir) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": is not a model dir; `muster checkpoint inspect` shows one checkpoint"));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto entries, target.List());
  const auto best = target.ReadBest();
  const auto is_best = [&best](const checkpoint::Entry& entry) {
    return best.ok() && best->step == entry.step && entry.status.ok();
  };
  if (options.json) {
    ordered_json json = ordered_json::array();
    for (const auto& entry : entries) json.push_back(EntryToJson(entry, is_best(entry)));
    PrintJson(out, json);
    return kSuccess;
  }
  if (entries.empty()) {
    out.PrintLine(absl::StrCat(target.name, " has no checkpoints yet."));
    return kSuccess;
  }
  Table table({"STEP", "SIZE", "WRITTEN", "STATE", "NOTE"}, 4);
  for (const auto& entry : entries) {
    const bool known = entry.written != absl::InfinitePast();
    const std::string state = out.Paint(
        entry.status.ok() ? Style::kGreen
                          : (absl::IsUnavailable(entry.status) ? Style::kYellow : Style::kRed),
        StateOf(entry.status));
    table.Add({absl::StrCat(entry.step), known ? base::FormatBytes(entry.bytes) : "",
               known ? base::FormatLocalTime(entry.written) : "",
               absl::StrCat(state, entry.final ? ", final" : "", is_best(entry) ? ", best" : ""),
               is_best(entry) ? absl::StrCat(base::Printable(best->metric), " ", best->value)
                              : base::Printable(entry.status.message())});
  }
  out.Print(table.Render(out));
  return kSuccess;
}

// A tensor and the file that contains it.
struct Row {
  base::TensorSpec spec;
  std::string file;
};

ordered_json RowsToJson(const std::vector<Row>& rows) {
  ordered_json json = ordered_json::array();
  for (const Row& row : rows) {
    json.push_back({{"name", row.spec.name},
                    {"dtype", std::string(base::ToString(row.spec.dtype))},
                    {"shape", row.spec.shape},
                    {"bytes", row.spec.bytes()},
                    {"file", row.file}});
  }
  return json;
}

// Prints the table, then the totals.
void PrintRows(Terminal& out, const std::string& title, const std::vector<Row>& rows) {
  Table table({title, "DTYPE", "SHAPE", "BYTES", "FILE"}, 0, {4});
  int64_t bytes = 0, elements = 0;
  for (const Row& row : rows) {
    bytes += row.spec.bytes();
    elements += base::ElementsOf(row.spec.shape);
    table.Add({base::Printable(row.spec.name), std::string(base::ToString(row.spec.dtype)),
               base::ToString(row.spec.shape), absl::StrCat(row.spec.bytes()), row.file});
  }
  if (!rows.empty()) out.Print(table.Render(out));
  out.PrintLine(absl::StrCat(base::Plural(static_cast<int64_t>(rows.size()), "tensor"), ", ",
                             base::Plural(elements, "element"), ", ", base::FormatBytes(bytes),
                             "\n"));
}

// Follows a link that the user names, unlike one within a checkpoint.
std::string Resolved(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

absl::StatusOr<int> InspectFile(Context& context, const CheckpointOptions& options,
                                const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const auto header, checkpoint::ReadHeader(Resolved(path)));
  const std::string name = fs::path(path).filename().string();
  std::vector<Row> rows;
  for (const auto& tensor : header.tensors) rows.push_back({tensor.spec, name});
  if (options.json) {
    PrintJson(
        context.out(),
        ordered_json{{"path", path}, {"metadata", header.metadata}, {"tensors", RowsToJson(rows)}});
    return kSuccess;
  }
  PrintRows(context.out(), "TENSOR", rows);
  for (const auto& [key, value] : header.metadata) {
    context.out().PrintLine(base::Printable(absl::StrCat(key, ": ", value)));
  }
  return kSuccess;
}

ordered_json InspectionToJson(const Checkpoint& opened, const std::vector<Row>& weights,
                              const std::vector<Row>& slots) {
  ordered_json files = ordered_json::array();
  for (const auto& file : opened.manifest().files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return {{"folder", opened.folder()},
          {"step", opened.step()},
          {"model", opened.model_name()},
          {"final", opened.final()},
          {"written", Rfc3339(opened.manifest().written)},
          {"bytes", opened.manifest().bytes()},
          {"files", files},
          {"weights", RowsToJson(weights)},
          {"slots", RowsToJson(slots)},
          {"state", opened.state()}};
}

// Prints one line per member, and for long members only the size.
void PrintState(Terminal& out, const nlohmann::json& state) {
  constexpr size_t kShown = 100;
  for (const auto& [key, value] : state.items()) {
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.PrintLine(absl::StrCat("state ", base::Printable(key), ": ",
                               text.size() <= kShown
                                   ? base::Printable(text)
                                   : absl::StrCat(text.size(), " bytes of JSON")));
  }
}

absl::StatusOr<int> Inspect(Context& context, const CheckpointOptions& options) {
  Terminal& out = context.out();
  MUSTER_ASSIGN_OR_RETURN(const CheckpointTarget target, FindCheckpoint(context, options.path));
  if (target.kind == CheckpointTarget::Kind::kFile)
    return InspectFile(context, options, target.path);
  MUSTER_ASSIGN_OR_RETURN(const Checkpoint opened,
                          OpenTarget(target, options.which, /*verify=*/false));
  std::vector<Row> weights, slots;
  for (const auto& spec : opened.weights()) weights.push_back({spec, opened.WeightFile(spec.name)});
  for (const auto& spec : opened.slots()) slots.push_back({spec, opened.SlotFile(spec.name)});
  if (options.json) {
    PrintJson(out, InspectionToJson(opened, weights, slots));
    return kSuccess;
  }
  out.PrintLine(absl::StrCat(
      "step ", opened.step(), " of ", base::Printable(opened.model_name()),
      opened.final() ? ", final" : "", ", ", base::FormatBytes(opened.manifest().bytes()), " in ",
      base::Plural(static_cast<int64_t>(opened.manifest().files.size()), "file"), ", written ",
      base::FormatLocalTime(opened.manifest().written)));
  out.PrintLine(absl::StrCat(opened.folder(), "\n"));
  PrintRows(out, "WEIGHT", weights);
  PrintRows(out, "SLOT", slots);
  PrintState(out, opened.state());
  return kSuccess;
}

// A progress line on a terminal while files are read.
class Progress {
 public:
  Progress(Terminal& terminal, int64_t total) : terminal_(terminal), total_(total) {}
  ~Progress() { terminal_.SetStatus(""); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(int64_t bytes) {
    done_ += bytes;
    const int percent = total_ > 0 ? static_cast<int>(100.0 * done_ / total_) : 100;
    terminal_.SetStatus(absl::StrCat("verifying: ", percent, "% of ", base::FormatBytes(total_)));
  }

 private:
  Terminal& terminal_;
  const int64_t total_;
  int64_t done_ = 0;
};

// Verifies the checksums first, because they identify every damaged file, then the content.
std::vector<absl::Status> DamageOf(const std::string& folder, Progress& progress) {
  const auto manifest = checkpoint::ReadManifest(folder);
  if (!manifest.ok()) return {manifest.status()};
  auto damage = checkpoint::VerifyFiles(folder, *manifest,
                                        [&progress](int64_t bytes) { progress.Add(bytes); });
  if (!damage.empty()) return damage;
  const auto opened = Checkpoint::Open(folder, /*verify=*/false);
  if (!opened.ok()) damage.push_back(opened.status());
  return damage;
}

// Returns whether the checkpoint is intact.
bool PrintVerdict(Terminal& out, const std::string& title,
                  const std::vector<absl::Status>& damage) {
  if (damage.empty()) {
    out.PrintLine(absl::StrCat(title, ": ", out.Paint(Style::kGreen, "ok")));
    return true;
  }
  out.PrintLine(absl::StrCat(title, ": ", out.Paint(Style::kRed, StateOf(damage[0]))));
  for (const absl::Status& status : damage) {
    out.PrintLine(absl::StrCat("  ", base::Printable(status.message())));
  }
  return false;
}

// Downloads a remote checkpoint and removes it afterwards.
absl::StatusOr<std::vector<absl::Status>> DamageOf(const CheckpointTarget& target,
                                                   const checkpoint::Entry& entry,
                                                   Progress& progress) {
  // A partial checkpoint has no checksums yet.
  if (absl::IsUnavailable(entry.status)) return std::vector<absl::Status>{entry.status};
  if (target.remote == nullptr) return DamageOf(entry.folder, progress);
  const absl::Status fetched = target.Fetch(absl::StrCat(entry.step));
  if (absl::IsDataLoss(fetched)) return std::vector<absl::Status>{fetched};
  MUSTER_RETURN_IF_ERROR(fetched);
  const std::string folder = checkpoint::CheckpointPath(target.path, entry.step);
  auto damage = DamageOf(folder, progress);
  std::error_code error;
  fs::remove_all(folder, error);
  return damage;
}

absl::StatusOr<int> VerifyAll(Context& context, const CheckpointTarget& target) {
  MUSTER_ASSIGN_OR_RETURN(const auto entries, target.List());
  if (entries.empty()) return NoCheckpoints(target.name);
  int64_t total = 0;
  for (const auto& entry : entries) total += entry.bytes;
  std::vector<std::vector<absl::Status>> damage;
  {
    Progress progress(context.err(), total);
    for (const auto& entry : entries) {
      MUSTER_ASSIGN_OR_RETURN(auto one, DamageOf(target, entry, progress));
      damage.push_back(std::move(one));
    }
  }
  int whole = 0, broken = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool ok = PrintVerdict(context.out(), absl::StrCat("step ", entries[i].step), damage[i]);
    whole += ok ? 1 : 0;
    broken += !ok && !absl::IsUnavailable(damage[i][0]) ? 1 : 0;
  }
  return whole > 0 && broken == 0 ? kSuccess : kFailure;
}

absl::StatusOr<int> Verify(Context& context, const CheckpointOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const CheckpointTarget target, FindCheckpoint(context, options.path));
  if (target.kind == CheckpointTarget::Kind::kModelDir) return VerifyAll(context, target);
  std::vector<absl::Status> damage;
  if (target.kind == CheckpointTarget::Kind::kFile) {
    const auto header = checkpoint::ReadHeader(Resolved(target.path));
    if (!header.ok()) damage.push_back(header.status());
  } else {
    const auto manifest = checkpoint::ReadManifest(target.path);
    Progress progress(context.err(), manifest.ok() ? manifest->bytes() : 0);
    damage = DamageOf(target.path, progress);
  }
  return PrintVerdict(context.out(), target.path, damage) ? kSuccess : kFailure;
}

absl::StatusOr<int> Export(Context& context, const CheckpointOptions& options) {
  if (options.to.empty()) {
    return absl::InvalidArgumentError("missing --to FILE.safetensors");
  }
  // Fails early; the write below does not replace a file created in between either.
  if (!options.force) MUSTER_RETURN_IF_ERROR(storage::CheckIsFree(options.to));
  MUSTER_ASSIGN_OR_RETURN(const CheckpointTarget target, FindCheckpoint(context, options.path));
  if (target.kind == CheckpointTarget::Kind::kFile) {
    return absl::InvalidArgumentError(absl::StrCat(options.path, ": is already a single file"));
  }
  MUSTER_ASSIGN_OR_RETURN(const Checkpoint opened,
                          OpenTarget(target, options.which, /*verify=*/true));
  std::vector<absl::Span<const std::byte>> bytes;
  for (const base::TensorSpec& spec : opened.weights()) {
    MUSTER_ASSIGN_OR_RETURN(const auto weight, opened.Weight(spec.name));
    bytes.push_back(weight);
  }
  MUSTER_RETURN_IF_ERROR(checkpoint::WriteSafetensors(
      options.to, opened.weights(), bytes, checkpoint::TorchMetadata(),
      options.force ? storage::IfExists::kReplace : storage::IfExists::kFail));
  const auto tensors = static_cast<int64_t>(opened.weights().size());
  context.out().PrintLine(absl::StrCat("Exported ", base::Plural(tensors, "tensor"), " of step ",
                                       opened.step(), " to ", options.to));
  return kSuccess;
}

}  // namespace

void AddCheckpointCommand(Command& program, Context& context) {
  Command& command =
      program.AddCommand("checkpoint", "List, inspect, verify and export the checkpoints of a job");
  auto options = std::make_shared<CheckpointOptions>();
  const auto add = [&](const char* name, const char* description, const char* path, auto body) {
    Command& sub = command.AddCommand(name, description);
    sub.Argument("PATH", &options->path, path, Presence::kRequired);
    sub.OnCall([&context, options, body] { return body(context, *options); });
    return &sub;
  };
  Command* list = add("list", "List the checkpoints, oldest first", "A model dir or a job", List);
  list->Flag("--json", &options->json, "Print JSON");
  Command* inspect = add("inspect", "Show the tensors and the state of a checkpoint",
                         "A checkpoint, a model dir, a job, or a .safetensors file", Inspect);
  inspect->Flag("--json", &options->json, "Print JSON");
  add("verify", "Verify the checksums of all files",
      "A checkpoint, a model dir (all of them) or a job", Verify);
  Command* save = add("export", "Write the weights into one safetensors file",
                      "A checkpoint, a model dir or a job", Export);
  save->Option("--to", &options->to, "The file or URL to write");
  save->Flag("--force", &options->force, "Replace an existing file");
  for (Command* sub : {inspect, save}) {
    sub->Option("--checkpoint", &options->which,
                "The checkpoint of a model dir: STEP, best or latest");
  }
  command.OnCall([&context, &command]() -> absl::StatusOr<int> {
    context.out().Print(command.Help());
    return kUsage;
  });
}

}  // namespace muster::cli
