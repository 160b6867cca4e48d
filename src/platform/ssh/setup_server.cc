#include "platform/ssh/setup_server.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/files/cache_folder.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/variables.h"
#include "platform/ssh/agent.h"
#include "platform/ssh/keys.h"
#include "platform/ssh/probe.h"
#include "platform/ssh/protocol.h"
#include "platform/ssh/wire.h"
#include "process/run.h"
#include "process/spawn.h"
#include "process/unix_socket.h"
#include "supervise/job_dir.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kRunTimeout = absl::Minutes(1);
constexpr int64_t kSyncBytes = 64 << 20;  // bytes
constexpr absl::Duration kTasksEndTimeout = absl::Seconds(30);

// Returns the root of all data: blobs by hash in files/, jobs in jobs/.
std::string Root() { return base::UserCacheFolder(base::ProcessVariables()); }

std::string NodeName() {
  utsname name{};
  ::uname(&name);
  return absl::StrReplaceAll(name.nodename, {{"/", "-"}});
}

// Returns a value that two hosts share only if they are the same machine.
std::string Identity() {
  struct stat root {};
  ::stat(Root().c_str(), &root);
  return absl::StrCat(base::ReadFile("/proc/sys/kernel/random/boot_id").value_or(""), root.st_dev,
                      ":", root.st_ino);
}

bool IsHash(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string BlobPath(const std::string& hash) {
  return absl::StrCat(Root(), "/files/", hash.substr(0, 2), "/", hash);
}

// The node name keeps hosts with a shared home directory apart.
std::string JobFolder(const std::string& id) {
  return absl::StrCat(Root(), "/jobs/", id, "@", NodeName());
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Ends the agent of a job. Returns once neither the agent nor its tasks run.
absl::Status EndAgent(const std::string& folder) {
  if (!Exists(folder)) return absl::OkStatus();
  const absl::Time give_up = base::Clock::Real().Now() + kTasksEndTimeout;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const auto lock,
                            base::FileLock::Try(base::JoinPath(folder, kAgentLock)));
    if (lock.has_value()) break;
    if (base::Clock::Real().Now() > give_up) {
      return absl::UnavailableError(
          absl::StrCat("the previous run does not end; see ", folder, "/agent.log"));
    }
    const auto agent = process::ConnectTo(folder, kAgentSocket);
    if (agent.ok()) base::WriteAll(agent->get(), Encode({{"op", "give_up"}})).IgnoreError();
    absl::SleepFor(absl::Milliseconds(50));
  }
  RemoveKeys(folder);
  return absl::OkStatus();
}

// Rejects a path that leaves its folder.
absl::Status CheckRelative(const std::string& path) {
  const std::filesystem::path parsed(path);
  const bool leaves = std::find(parsed.begin(), parsed.end(), "..") != parsed.end();
  if (!path.empty() && !parsed.is_absolute() && !leaves) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a path within a folder"));
}

// Returns a member that is a list, or an empty list if it is absent or of another type.
Json ListAt(const Json& json, absl::string_view key) {
  const auto list = json.find(key);
  return list != json.end() && list->is_array() ? *list : Json::array();
}

std::vector<std::string> WordsAt(const Json& json, absl::string_view key) {
  std::vector<std::string> words;
  for (const Json& word : ListAt(json, key)) words.push_back(word.is_string() ? word : "");
  return words;
}

class SetupServer {
 public:
  explicit SetupServer(int out) : out_(out) {}
  ~SetupServer() {
    DropIncoming();
    CommitArrived().IgnoreError();
  }

  // Returns false if the client is gone.
  bool Answer(const Message& message) {
    const std::string op = base::TextMember(message.head, "op");
    absl::StatusOr<Json> answer = Do(op, message);
    if (!answer.ok()) {
      answer = Json{{"error", std::string(answer.status().message())},
                    {"code", static_cast<int>(answer.status().code())}};
    }
    return base::WriteAll(out_, Encode(*answer)).ok();
  }

 private:
  absl::StatusOr<Json> Do(const std::string& op, const Message& message) {
    const auto handler = handlers_.find(op);
    if (handler == handlers_.end()) {
      return absl::UnimplementedError(absl::StrCat("unknown request '", op, "'"));
    }
    if (op != "put") MUSTER_RETURN_IF_ERROR(CommitArrived());
    return handler->second(message);
  }

  static absl::StatusOr<Json> Info(const Message& /*message*/) {
    utsname name{};
    ::uname(&name);
    cpu_set_t set;
    const int cpus =
        ::sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
    struct statvfs disk {};
    MUSTER_RETURN_IF_ERROR(base::MakeTrustedFolder(Root()));
    ::statvfs(Root().c_str(), &disk);
    return Json{
        {"hostname", name.nodename},
        {"system", name.sysname},
        {"machine", name.machine},
        {"root", Root()},
        {"identity", Identity()},
        {"cpus", cpus},
        {"memory", static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)},
        {"free", static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize)},
        {"now", TimeToJson(absl::Now())}};
  }

  // Returns the files that are absent or differ in size.
  static absl::StatusOr<Json> Missing(const Message& message) {
    Json missing = Json::array();
    const auto files = message.head.find("files");
    if (files == message.head.end() || !files->is_object()) {
      return absl::InvalidArgumentError("no files");
    }
    for (const auto& [hash, size] : files->items()) {
      struct stat info {};
      const bool here = IsHash(hash) && ::stat(BlobPath(hash).c_str(), &info) == 0;
      if (!here || info.st_size != base::IntMember(*files, hash)) missing.push_back(hash);
    }
    return Json{{"missing", missing}};
  }

  // Receives one piece of a blob. The sender verifies the blob before it sends the last piece.
  // After a failed piece the following ones are still in flight; they fail at the check of `at`.
  absl::StatusOr<Json> Put(const Message& message) {
    const std::string hash = base::TextMember(message.head, "sha256");
    if (!IsHash(hash)) return absl::InvalidArgumentError("no hash");
    const std::string path = BlobPath(hash);
    const int64_t at = base::IntMember(message.head, "at");
    if (at == 0) {
      DropIncoming();
      MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(path)));
      incoming_path_ = absl::StrCat(path, ".", NodeName(), ".", ::getpid());
      incoming_ = base::UniqueFd(
          ::open(incoming_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));
      if (!incoming_.valid()) return base::DiskError(errno, incoming_path_);
      incoming_bytes_ = 0;
    }
    if (!incoming_.valid() || at != incoming_bytes_) {
      DropIncoming();
      return absl::DataLossError("a file arrived incomplete");
    }
    if (absl::Status written = base::WriteAll(incoming_.get(), message.body); !written.ok()) {
      DropIncoming();
      return written;
    }
    incoming_bytes_ += static_cast<int64_t>(message.body.size());
    if (!base::BoolMember(message.head, "last")) return Json::object();
    arrived_.emplace_back(incoming_path_, path);
    arrived_bytes_ += incoming_bytes_;
    incoming_.Reset();
    if (arrived_bytes_ >= kSyncBytes) MUSTER_RETURN_IF_ERROR(CommitArrived());
    return Json::object();
  }

  // Renames blobs to their final names after one sync for all of them: a sync per blob is slow.
  absl::Status CommitArrived() {
    if (arrived_.empty()) return absl::OkStatus();
    arrived_bytes_ = 0;
    const auto arrived = std::exchange(arrived_, {});
    const base::UniqueFd disk(::open(Root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    absl::Status kept =
        ::syncfs(disk.get()) == 0 ? absl::OkStatus() : base::DiskError(errno, Root());
    for (const auto& [from, to] : arrived) {
      if (kept.ok() && ::rename(from.c_str(), to.c_str()) != 0) kept = base::DiskError(errno, to);
      if (!kept.ok()) ::unlink(from.c_str());
    }
    return kept;
  }

  void DropIncoming() {
    if (!incoming_.valid()) return;
    incoming_.Reset();
    ::unlink(incoming_path_.c_str());
  }

  // The replaced run, if any, may still have tasks: its supervisor may be dead without its agent
  // having timed out.
  static absl::StatusOr<Json> CreateJob(const Message& message) {
    const std::string id = base::TextMember(message.head, "job");
    MUSTER_RETURN_IF_ERROR(CheckRelative(id));
    if (const std::string former = base::TextMember(message.head, "former"); !former.empty()) {
      MUSTER_RETURN_IF_ERROR(CheckRelative(former));
      MUSTER_RETURN_IF_ERROR(EndAgent(JobFolder(former)));
    }
    RemoveAbandonedKeys(base::JoinPath(Root(), "jobs"), NodeName(), absl::Now());
    const supervise::JobDir dir(JobFolder(id));
    if (absl::Status made = dir.Create(); !made.ok() && !absl::IsAlreadyExists(made)) return made;
    return Json{{"folder", dir.path()}};
  }

  // Builds the working directory from blobs, over several messages if it has many files. The old
  // directory is replaced at the last message.
  static absl::StatusOr<Json> MakeWorkDir(const Message& message) {
    const std::string folder = base::TextMember(message.head, "folder");
    const std::string fresh = absl::StrCat(folder, ".new");
    std::error_code error;
    if (base::BoolMember(message.head, "first")) std::filesystem::remove_all(fresh, error);
    MUSTER_RETURN_IF_ERROR(base::MakeDirectories(fresh));
    const auto files = message.head.find("files");
    if (files == message.head.end() || !files->is_array()) {
      return absl::InvalidArgumentError("no files");
    }
    for (const Json& file : *files) MUSTER_RETURN_IF_ERROR(PlaceFile(fresh, file));
    if (!base::BoolMember(message.head, "last")) return Json::object();
    std::filesystem::remove_all(folder, error);
    if (::rename(fresh.c_str(), folder.c_str()) != 0) return base::DiskError(errno, folder);
    return Json::object();
  }

  // Replaces, adds and removes files of the working directory of a running job. Files that tasks
  // wrote stay. Tasks that have a replaced file open keep its old content.
  static absl::StatusOr<Json> EditWorkDir(const Message& message) {
    const std::string folder = base::TextMember(message.head, "folder");
    const std::string staged = absl::StrCat(folder, ".new");
    std::error_code error;
    std::filesystem::remove_all(staged, error);
    const Json files = ListAt(message.head, "files");
    for (const Json& file : files) MUSTER_RETURN_IF_ERROR(PlaceFile(staged, file));
    // Nothing can fail from here on for lack of space: all contents are on the disk.
    for (const std::string& name : base::TextListMember(message.head, "removed")) {
      MUSTER_RETURN_IF_ERROR(CheckRelative(name));
      std::filesystem::remove(base::JoinPath(folder, name), error);
    }
    for (const Json& file : files) {
      const std::string name = base::TextMember(file, "path");
      const std::string path = base::JoinPath(folder, name);
      MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(path)));
      if (::rename(base::JoinPath(staged, name).c_str(), path.c_str()) != 0) {
        return base::DiskError(errno, path);
      }
    }
    std::filesystem::remove_all(staged, error);
    return Json::object();
  }

  static absl::Status PlaceFile(const std::string& folder, const Json& file) {
    const std::string name = base::TextMember(file, "path");
    MUSTER_RETURN_IF_ERROR(CheckRelative(name));
    const std::string path = base::JoinPath(folder, name);
    MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(path)));
    if (const std::string target = base::TextMember(file, "link"); !target.empty()) {
      return ::symlink(target.c_str(), path.c_str()) == 0 ? absl::OkStatus()
                                                          : base::DiskError(errno, path);
    }
    const std::string hash = base::TextMember(file, "sha256");
    if (!IsHash(hash)) return absl::InvalidArgumentError("no hash");
    std::error_code error;
    std::filesystem::copy_file(BlobPath(hash), path, error);
    if (error) return base::DiskError(error.value(), path);
    ::chmod(path.c_str(), static_cast<mode_t>(base::IntMember(file, "mode")) & 0777);
    return absl::OkStatus();
  }

  static absl::StatusOr<Json> WriteSmallFile(const Message& message) {
    const std::string path = base::TextMember(message.head, "path");
    MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(path)));
    MUSTER_RETURN_IF_ERROR(base::WriteFileAtomically(path, message.body));
    return Json::object();
  }

  // Returns the path of a blob that is a program.
  static absl::StatusOr<Json> ProgramPath(const Message& message) {
    const std::string hash = base::TextMember(message.head, "sha256");
    if (!IsHash(hash) || !Exists(BlobPath(hash))) return absl::NotFoundError("not here");
    return Json{{"path", BlobPath(hash)}};
  }

  static absl::StatusOr<Json> RunProgram(const Message& message) {
    MUSTER_ASSIGN_OR_RETURN(
        const process::RunResult result,
        process::Run({.argv = WordsAt(message.head, "argv"), .env = process::CurrentEnvironment()},
                     kRunTimeout));
    return Json{{"output", result.output}, {"exit_code", result.exit.code()}};
  }

  // Listens until Unlisten(), so that the other hosts can try to connect.
  absl::StatusOr<Json> Listen(const Message& message) {
    std::vector<int> fixed;
    for (const Json& port : ListAt(message.head, "ports")) {
      if (port.is_number_integer()) fixed.push_back(port);
    }
    MUSTER_ASSIGN_OR_RETURN(listener_, Listener::Open(fixed));
    return Json{{"ports", listener_->ports()}};
  }
  absl::StatusOr<Json> Unlisten(const Message& /*message*/) {
    listener_.reset();
    return Json::object();
  }

  // Tries to connect to each address. Returns for each "" or the reason for the failure.
  static absl::StatusOr<Json> Reach(const Message& message) {
    const absl::Duration timeout =
        absl::Milliseconds(std::max<int64_t>(100, base::IntMember(message.head, "timeout_ms")));
    return Json{{"results", TryToReach(WordsAt(message.head, "addresses"), timeout)}};
  }

  using Handler = std::function<absl::StatusOr<Json>(const Message&)>;
  const std::map<std::string, Handler> handlers_ = {
      {"info", Info},
      {"missing", Missing},
      {"put", [this](const Message& m) { return Put(m); }},
      {"job", CreateJob},
      {"work", MakeWorkDir},
      {"edit", EditWorkDir},
      {"file", WriteSmallFile},
      {"program", ProgramPath},
      {"run", RunProgram},
      {"listen", [this](const Message& m) { return Listen(m); }},
      {"unlisten", [this](const Message& m) { return Unlisten(m); }},
      {"reach", Reach},
  };
  const int out_;
  std::optional<Listener> listener_;
  base::UniqueFd incoming_;
  int64_t incoming_bytes_ = 0;
  std::string incoming_path_;
  std::vector<std::pair<std::string, std::string>> arrived_;  // temporary path, final path
  int64_t arrived_bytes_ = 0;
};

}  // namespace

int ServeSetup(int in, int out) {
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(077);
  if (!base::WriteAll(out, kPreface).ok()) return 1;
  SetupServer host(out);
  Decoder decoder;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    auto message = decoder.Next();
    if (message.ok()) {
      if (!host.Answer(*message)) return 0;
      continue;
    }
    if (absl::IsDataLoss(message.status())) return 1;
    const ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    decoder.Add({buffer.data(), static_cast<size_t>(n)});
  }
}

}  // namespace muster::ssh
