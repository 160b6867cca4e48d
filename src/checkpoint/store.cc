#include "checkpoint/store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"
#include "checkpoint/format.h"
#include "checkpoint/retention.h"

namespace muster::checkpoint {
namespace {

// Long enough for a trainer that is just exiting.
constexpr absl::Duration kTrainerLockTimeout = absl::Seconds(2);

std::string StoreOf(const std::string& model_dir) { return base::JoinPath(model_dir, kFolder); }

// A folder of the store.
//
//    suffix      content                               removed by
//    ""          a checkpoint, if its manifest is OK   Retain(), when it is old
//    .partial    a writer's, until it is published     ClearLeftovers(), if its writer has died
//    .replaced   the former checkpoint of the step,    ClearLeftovers(), which puts it back if the
//                for an instant of Writer::Publish()   step has no other
struct Member {
  int64_t step = 0;
  std::string suffix;  // "", kPartialSuffix, kReplacedSuffix
  std::string path;
};

std::optional<Member> ParseMember(const std::string& store, const std::string& name) {
  for (const char* suffix : {"", kPartialSuffix, kReplacedSuffix}) {
    absl::string_view stem = name;
    if (!absl::ConsumeSuffix(&stem, suffix)) continue;
    if (const auto step = ParseStepFolder(stem); step.has_value()) {
      return Member{.step = *step, .suffix = suffix, .path = base::JoinPath(store, name)};
    }
  }
  return std::nullopt;
}

// Returns the members sorted by step; none if the store does not exist.
std::vector<Member> Members(const std::string& store) {
  std::vector<Member> members;
  std::error_code error;
  for (std::filesystem::directory_iterator it(store, error), end; !error && it != end;
       it.increment(error)) {
    if (auto member = ParseMember(store, it->path().filename().string()); member.has_value()) {
      members.push_back(*std::move(member));
    }
  }
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return std::pair(a.step, a.suffix) < std::pair(b.step, b.suffix);
  });
  return members;
}

absl::Status CheckFolder(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0)
    return absl::UnavailableError(absl::StrCat(path, ": has been removed"));
  if (S_ISDIR(info.st_mode)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": is a file or a link, not a folder"));
}

Entry Describe(const Member& member) {
  Entry entry{.step = member.step, .folder = member.path, .written = absl::InfinitePast()};
  if (!member.suffix.empty()) {
    entry.status =
        absl::UnavailableError(absl::StrCat(member.path, ": is being written, or its writer died"));
    return entry;
  }
  entry.status = CheckFolder(member.path);
  if (!entry.status.ok()) return entry;
  const auto manifest = ReadManifest(member.path);
  if (!manifest.ok()) {
    entry.status = manifest.status();
    return entry;
  }
  entry.Fill(*manifest);
  entry.status = CheckSizes(member.path, *manifest);
  return entry;
}

// Returns whether a live writer may own the folder.
// REQUIRES: kStoreLock held, since a writer takes its own lock under it.
absl::StatusOr<bool> IsOwned(const Member& member) {
  const std::string lock = base::JoinPath(member.path, kWriterLock);
  if (!Exists(lock)) return false;
  MUSTER_ASSIGN_OR_RETURN(const auto free, base::FileLock::Try(lock));
  return !free.has_value();
}

// Removes the folder of a writer that died, or puts back the checkpoint that it was replacing.
absl::Status ClearLeftover(const std::string& store, const Member& member) {
  const std::string whole = base::JoinPath(store, StepFolder(member.step));
  if (member.suffix == kReplacedSuffix && !Exists(whole)) return Rename(member.path, whole);
  return RemoveFolder(member.path);
}

// Records the first error of a loop that continues after errors.
void KeepFirstError(absl::Status& first, absl::Status status) {
  if (first.ok()) first = std::move(status);
}

// Cleans up after writers that died.
// REQUIRES: kStoreLock held.
absl::Status ClearLeftovers(const std::string& store) {
  absl::Status first;
  for (const Member& member : Members(store)) {
    if (member.suffix.empty()) continue;
    const auto owned = IsOwned(member);
    KeepFirstError(first, owned.status());
    if (owned.ok() && !*owned) KeepFirstError(first, ClearLeftover(store, member));
  }
  return first;
}

absl::StatusOr<std::string> MakeSuperseded(const std::string& model_dir) {
  for (int n = 1;; ++n) {
    const std::string path = base::JoinPath(model_dir, absl::StrCat(kSupersededPrefix, n));
    if (::mkdir(path.c_str(), 0755) == 0) return path;
    if (errno != EEXIST) return base::DiskError(errno, path);
  }
}

absl::StatusOr<std::vector<Member>> NewerThan(const std::string& store, int64_t step) {
  std::vector<Member> newer;
  for (Member& member : Members(store)) {
    if (member.step <= step) continue;
    MUSTER_ASSIGN_OR_RETURN(const bool owned, IsOwned(member));
    if (owned) {
      return absl::FailedPreconditionError(absl::StrCat(
          member.path, ": another process is writing it; stop that job before resuming here"));
    }
    newer.push_back(std::move(member));
  }
  return newer;
}

// Moves the checkpoints after that step, the record of the best if it is one of them, and `others`
// into superseded-N. Returns that folder, or "" if there was nothing to move.
absl::StatusOr<std::string> MoveAside(const std::string& model_dir, int64_t after_step,
                                      const std::vector<std::string>& others) {
  const std::string store = StoreOf(model_dir);
  if (!Exists(store) && others.empty()) return "";
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(store, 0755));
  MUSTER_ASSIGN_OR_RETURN(
      const base::FileLock lock,
      base::FileLock::Acquire(base::JoinPath(store, kStoreLock), kStoreLockTimeout));
  MUSTER_ASSIGN_OR_RETURN(const auto newer, NewerThan(store, after_step));
  const auto best = ReadBest(model_dir);
  const bool best_goes = best.ok() && best->step > after_step;
  if (newer.empty() && !best_goes && others.empty()) return "";
  MUSTER_ASSIGN_OR_RETURN(const std::string aside, MakeSuperseded(model_dir));
  const auto move = [&](const std::string& path) {
    return Rename(path, base::JoinPath(aside, std::filesystem::path(path).filename().string()));
  };
  if (best_goes) MUSTER_RETURN_IF_ERROR(move(base::JoinPath(store, kBestFile)));
  // Newest first: an interruption at any point leaves the run consistent, only shorter.
  for (auto member = newer.rbegin(); member != newer.rend(); ++member) {
    MUSTER_RETURN_IF_ERROR(move(member->path));
  }
  for (const std::string& path : others) MUSTER_RETURN_IF_ERROR(move(path));
  MUSTER_RETURN_IF_ERROR(base::SyncFolder(aside));
  MUSTER_RETURN_IF_ERROR(base::SyncFolder(store));
  MUSTER_RETURN_IF_ERROR(base::SyncFolder(model_dir));
  return aside;
}

}  // namespace

void Entry::Fill(const Manifest& manifest) {
  written = manifest.written;
  bytes = manifest.bytes();
  final = manifest.final;
}

std::vector<Entry> List(const std::string& model_dir) {
  std::vector<Entry> entries;
  for (const Member& member : Members(StoreOf(model_dir))) entries.push_back(Describe(member));
  return entries;
}

absl::StatusOr<Checkpoint> Restore(const std::string& model_dir, std::optional<int64_t> step,
                                   std::vector<std::string>* skipped) {
  if (step.has_value()) {
    const std::string folder = CheckpointPath(model_dir, *step);
    if (!Exists(folder)) {
      return absl::NotFoundError(absl::StrCat(model_dir, ": has no checkpoint of step ", *step));
    }
    MUSTER_RETURN_IF_ERROR(CheckFolder(folder));
    return Checkpoint::Open(folder);
  }
  std::vector<Entry> entries = List(model_dir);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    absl::Status status = entry->status;
    if (status.ok()) {
      auto checkpoint = Checkpoint::Open(entry->folder);
      if (checkpoint.ok()) return checkpoint;
      status = checkpoint.status();
    }
    if (skipped != nullptr) {
      skipped->push_back(absl::StrCat("step ", entry->step, ": ", status.message()));
    }
  }
  return absl::NotFoundError(absl::StrCat(model_dir, ": has no checkpoint that can be restored"));
}

absl::StatusOr<std::optional<int64_t>> StepOf(const std::string& model_dir,
                                              const std::string& which) {
  if (which == "latest") return std::nullopt;
  if (which == "best") {
    MUSTER_ASSIGN_OR_RETURN(const Best best, ReadBest(model_dir));
    return best.step;
  }
  int64_t step = 0;
  if (absl::SimpleAtoi(which, &step) && step >= 0) return step;
  return absl::InvalidArgumentError(
      absl::StrCat("--checkpoint must be a step, best or latest, not '", which, "'"));
}

absl::StatusOr<Checkpoint> Find(const std::string& model_dir, const std::string& which) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<int64_t> step, StepOf(model_dir, which));
  auto stored = Restore(model_dir, step, nullptr);
  if (stored.ok() || !step.has_value() || !absl::IsNotFound(stored.status())) return stored;
  std::vector<std::string> steps;
  for (const Entry& entry : List(model_dir)) {
    if (entry.status.ok()) steps.push_back(absl::StrCat(entry.step));
  }
  return absl::NotFoundError(
      absl::StrCat(stored.status().message(), "; ",
                   steps.empty() ? "it has none" : "available: ", absl::StrJoin(steps, ", ")));
}

absl::Status Retain(const std::string& model_dir, int keep, const std::set<int64_t>& always) {
  MUSTER_RETURN_IF_ERROR(CheckKeep(keep));
  const std::string store = StoreOf(model_dir);
  if (!Exists(store)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      const base::FileLock lock,
      base::FileLock::Acquire(base::JoinPath(store, kStoreLock), kStoreLockTimeout));
  absl::Status first = ClearLeftovers(store);
  std::set<int64_t> usable, damaged;
  // Lists the members again: clearing may have put a replaced checkpoint back.
  for (const Member& member : Members(store)) {
    if (!member.suffix.empty()) continue;
    (Describe(member).status.ok() ? usable : damaged).insert(member.step);
  }
  for (const int64_t step : StepsToDelete(usable, damaged, keep, always)) {
    KeepFirstError(first, RemoveFolder(CheckpointPath(model_dir, step)));
  }
  return first;
}

absl::StatusOr<base::FileLock> ClaimForTraining(const std::string& model_dir,
                                                const std::string& who) {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(model_dir, 0755));
  const std::string path = base::JoinPath(model_dir, kTrainerLock);
  auto lock = base::FileLock::Acquire(path, kTrainerLockTimeout);
  if (absl::IsUnavailable(lock.status())) {
    const std::string holder(absl::StripAsciiWhitespace(base::ReadFile(path).value_or("")));
    return absl::FailedPreconditionError(
        absl::StrCat(model_dir, ": ", holder.empty() ? "another job" : holder,
                     " trains in this model dir; stop it first, or choose another model_dir"));
  }
  if (lock.ok()) lock->Describe(who);
  return lock;
}

absl::Status SetAside(const std::string& model_dir, int64_t after_step) {
  return MoveAside(model_dir, after_step, {}).status();
}

absl::StatusOr<std::string> SetRunAside(const std::string& model_dir) {
  std::vector<std::string> outputs;
  std::error_code error;
  for (std::filesystem::directory_iterator it(model_dir, error), end; !error && it != end;
       it.increment(error)) {
    if (IsRunOutput(it->path().filename().string())) outputs.push_back(it->path().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::DiskError(error.value(), model_dir);
  }
  return MoveAside(model_dir, /*after_step=*/-1, outputs);
}

std::string JobOf(const nlohmann::json& state) {
  const auto job = state.find("job");
  return job != state.end() && job->is_string() ? job->get<std::string>() : "";
}

absl::StatusOr<Best> BestOf(const nlohmann::json& json) {
  const auto step = json.find("step");
  const auto metric = json.find("metric");
  const auto value = json.find("value");
  if (step == json.end() || !step->is_number_unsigned() || metric == json.end() ||
      !metric->is_string() || value == json.end() || !value->is_number()) {
    return absl::DataLossError("must have step, metric and value");
  }
  return Best{.step = step->get<int64_t>(),
              .metric = metric->get<std::string>(),
              .value = value->get<double>()};
}

absl::StatusOr<Best> ReadBest(const std::string& model_dir) {
  const std::string store = StoreOf(model_dir);
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonObject(store, kBestFile));
  auto best = BestOf(json);
  if (!best.ok()) return base::Annotate(best.status(), base::JoinPath(store, kBestFile));
  return best;
}

absl::Status WriteBest(const std::string& model_dir, const Best& best) {
  if (!std::isfinite(best.value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", best.metric, " of ", best.value, " cannot be the best"));
  }
  const std::string store = StoreOf(model_dir);
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(store, 0755));
  const nlohmann::ordered_json json = {
      {"step", best.step}, {"metric", best.metric}, {"value", best.value}};
  return base::WriteFileAtomically(
      base::JoinPath(store, kBestFile),
      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", 0644);
}

}  // namespace muster::checkpoint
