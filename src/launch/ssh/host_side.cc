#include "launch/ssh/host_side.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "cluster/address.h"
#include "launch/job_dir.h"
#include "launch/ssh/protocol.h"
#include "launch/ssh/wire.h"
#include "process/exit_status.h"
#include "process/spawn.h"

namespace muster::ssh {
namespace {

constexpr int64_t kMostProgramOutput = 64 << 10;

// Where everything is kept: blobs by their hash in files/, jobs in jobs/.
std::string Root() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return JoinPath(cache, "muster");
  const char* home = std::getenv("HOME");
  return JoinPath(home == nullptr ? "/tmp" : home, ".cache/muster");
}

std::string NodeName() {
  utsname name{};
  ::uname(&name);
  return absl::StrReplaceAll(name.nodename, {{"/", "-"}});
}

// The same for two hosts only when they are one machine.
std::string Identity() {
  struct stat root {};
  ::stat(Root().c_str(), &root);
  return absl::StrCat(ReadFile("/proc/sys/kernel/random/boot_id").value_or(""), root.st_dev, ":",
                      root.st_ino);
}

bool IsHash(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string BlobPath(const std::string& hash) {
  return absl::StrCat(Root(), "/files/", hash.substr(0, 2), "/", hash);
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// One that leads out of the folder it is meant for is refused.
absl::Status CheckRelative(const std::string& path) {
  const std::filesystem::path parsed(path);
  const bool leaves = std::find(parsed.begin(), parsed.end(), "..") != parsed.end();
  if (!path.empty() && !parsed.is_absolute() && !leaves) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a path within a folder"));
}

// What a program prints, and its exit code.
absl::StatusOr<std::pair<std::string, int>> RunAndRead(const std::vector<std::string>& argv) {
  std::array<int, 2> fds;
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  UniqueFd read_end(fds[0]), write_end(fds[1]);
  MUSTER_ASSIGN_OR_RETURN(
      const pid_t pid,
      Spawn({.argv = argv, .env = CurrentEnvironment(), .output_fd = write_end.get()}));
  write_end.Reset();
  std::string output = ReadAll(read_end.get(), kMostProgramOutput).value_or("");
  int status = 0;
  ::waitpid(pid, &status, 0);
  return std::pair{std::move(output), ExitStatus::FromWait(status).code()};
}

class HostSide {
 public:
  explicit HostSide(int out) : out_(out) {}
  ~HostSide() { DropIncoming(); }

  // False when nobody listens any more.
  bool Answer(const Message& message) {
    const std::string op = TextAt(message.head, "op");
    const auto handler = handlers_.find(op);
    absl::StatusOr<Json> answer =
        handler == handlers_.end()
            ? absl::UnimplementedError(absl::StrCat("this agent knows no '", op, "'"))
            : handler->second(message);
    if (!answer.ok()) {
      answer = Json{{"error", std::string(answer.status().message())},
                    {"code", static_cast<int>(answer.status().code())}};
    }
    return WriteAll(out_, Encode(*answer)).ok();
  }

 private:
  static absl::StatusOr<Json> Info(const Message& /*message*/) {
    utsname name{};
    ::uname(&name);
    cpu_set_t set;
    const int cpus =
        ::sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
    struct statvfs disk {};
    MUSTER_RETURN_IF_ERROR(MakeDirectories(Root()));
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

  static absl::StatusOr<Json> Missing(const Message& message) {
    Json missing = Json::array();
    if (message.head.contains("files") && message.head["files"].is_array()) {
      for (const Json& hash : message.head["files"]) {
        if (!hash.is_string() || !IsHash(hash.get<std::string>())) continue;
        if (!Exists(BlobPath(hash))) missing.push_back(hash);
      }
    }
    return Json{{"missing", missing}};
  }

  // A blob in pieces, the last of which says so: the sender has checked it by then. When the disk
  // did not take a piece, those after it are on their way already.
  absl::StatusOr<Json> Put(const Message& message) {
    const std::string hash = TextAt(message.head, "sha256");
    if (!IsHash(hash)) return absl::InvalidArgumentError("no hash");
    const std::string path = BlobPath(hash);
    const int64_t at = NumberAt(message.head, "at");
    if (at == 0) {
      DropIncoming();
      MUSTER_RETURN_IF_ERROR(MakeDirectories(FolderOf(path)));
      incoming_path_ = absl::StrCat(path, ".", NodeName(), ".", ::getpid());
      incoming_ =
          UniqueFd(::open(incoming_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));
      if (!incoming_.valid()) return DiskError(errno, incoming_path_);
      incoming_bytes_ = 0;
    }
    if (!incoming_.valid() || at != incoming_bytes_) {
      DropIncoming();
      return absl::DataLossError("a file arrived incomplete");
    }
    if (absl::Status written = WriteAll(incoming_.get(), message.body); !written.ok()) {
      DropIncoming();
      return written;
    }
    incoming_bytes_ += static_cast<int64_t>(message.body.size());
    if (!IsSet(message.head, "last")) return Json::object();
    if (::rename(incoming_path_.c_str(), path.c_str()) != 0) {
      const int error = errno;
      DropIncoming();
      return DiskError(error, path);
    }
    incoming_.Reset();
    return Json::object();
  }

  void DropIncoming() {
    if (!incoming_.valid()) return;
    incoming_.Reset();
    ::unlink(incoming_path_.c_str());
  }

  static absl::StatusOr<Json> CreateJob(const Message& message) {
    const std::string id = TextAt(message.head, "job");
    MUSTER_RETURN_IF_ERROR(CheckRelative(id));
    // Hosts may share a home.
    const JobDir dir(absl::StrCat(Root(), "/jobs/", id, "@", NodeName()));
    if (absl::Status made = dir.Create(); !made.ok() && !absl::IsAlreadyExists(made)) return made;
    return Json{{"folder", dir.path()}};
  }

  // The working directory anew, from blobs that are here; in pieces where it has many files.
  static absl::StatusOr<Json> MakeWorkDir(const Message& message) {
    const std::string folder = TextAt(message.head, "folder");
    const std::string fresh = absl::StrCat(folder, ".new");
    std::error_code error;
    if (IsSet(message.head, "first")) std::filesystem::remove_all(fresh, error);
    MUSTER_RETURN_IF_ERROR(MakeDirectories(fresh));
    const auto files = message.head.find("files");
    if (files == message.head.end() || !files->is_array()) {
      return absl::InvalidArgumentError("no files");
    }
    for (const Json& file : *files) MUSTER_RETURN_IF_ERROR(PlaceFile(fresh, file));
    if (!IsSet(message.head, "last")) return Json::object();
    std::filesystem::remove_all(folder, error);
    if (::rename(fresh.c_str(), folder.c_str()) != 0) return DiskError(errno, folder);
    return Json::object();
  }

  static absl::Status PlaceFile(const std::string& folder, const Json& file) {
    const std::string name = TextAt(file, "path");
    MUSTER_RETURN_IF_ERROR(CheckRelative(name));
    const std::string path = JoinPath(folder, name);
    MUSTER_RETURN_IF_ERROR(MakeDirectories(FolderOf(path)));
    if (const std::string target = TextAt(file, "link"); !target.empty()) {
      return ::symlink(target.c_str(), path.c_str()) == 0 ? absl::OkStatus()
                                                          : DiskError(errno, path);
    }
    const std::string hash = TextAt(file, "sha256");
    if (!IsHash(hash)) return absl::InvalidArgumentError("no hash");
    std::error_code error;
    std::filesystem::copy_file(BlobPath(hash), path, error);
    if (error) return DiskError(error.value(), path);
    ::chmod(path.c_str(), static_cast<mode_t>(NumberAt(file, "mode")) & 0777);
    return absl::OkStatus();
  }

  static absl::StatusOr<Json> WriteSmallFile(const Message& message) {
    const std::string path = TextAt(message.head, "path");
    MUSTER_RETURN_IF_ERROR(MakeDirectories(FolderOf(path)));
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(path, message.body));
    return Json::object();
  }

  // The path of a blob that is a program.
  static absl::StatusOr<Json> ProgramPath(const Message& message) {
    const std::string hash = TextAt(message.head, "sha256");
    if (!IsHash(hash) || !Exists(BlobPath(hash))) return absl::NotFoundError("not here");
    return Json{{"path", BlobPath(hash)}};
  }

  static absl::StatusOr<Json> RunProgram(const Message& message) {
    std::vector<std::string> argv;
    if (const auto list = message.head.find("argv");
        list != message.head.end() && list->is_array()) {
      for (const Json& word : *list) {
        if (word.is_string()) argv.push_back(word);
      }
    }
    MUSTER_ASSIGN_OR_RETURN(const auto answer, RunAndRead(argv));
    return Json{{"output", answer.first}, {"exit_code", answer.second}};
  }

  // Listens on a free port until Unlisten, so that the other hosts can try to reach it.
  absl::StatusOr<Json> Listen(const Message& /*message*/) {
    listener_ = UniqueFd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int off = 0;
    ::setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    sockaddr_in6 any{.sin6_family = AF_INET6};
    socklen_t length = sizeof(any);
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&any), length) != 0 ||
        ::listen(listener_.get(), 64) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &length) != 0) {
      return absl::ErrnoToStatus(errno, "cannot listen");
    }
    return Json{{"port", ntohs(any.sin6_port)}};
  }
  absl::StatusOr<Json> Unlisten(const Message& /*message*/) {
    listener_.Reset();
    return Json::object();
  }

  // Whether something listens at each of some addresses: "" or why not.
  static absl::StatusOr<Json> Reach(const Message& message);

  using Handler = std::function<absl::StatusOr<Json>(const Message&)>;
  const std::map<std::string, Handler> handlers_ = {
      {"info", Info},
      {"missing", Missing},
      {"put", [this](const Message& m) { return Put(m); }},
      {"job", CreateJob},
      {"work", MakeWorkDir},
      {"file", WriteSmallFile},
      {"program", ProgramPath},
      {"run", RunProgram},
      {"listen", [this](const Message& m) { return Listen(m); }},
      {"unlisten", [this](const Message& m) { return Unlisten(m); }},
      {"reach", Reach},
  };
  const int out_;
  UniqueFd listener_;
  UniqueFd incoming_;
  int64_t incoming_bytes_ = 0;
  std::string incoming_path_;
};

// An address of the host in numbers; "" when its name is not known. Asked of getent, which knows
// what this host knows: a program without shared libraries does not.
std::string Resolve(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> numbers;
  if (::inet_pton(AF_INET, host.c_str(), numbers.data()) == 1 ||
      ::inet_pton(AF_INET6, host.c_str(), numbers.data()) == 1) {
    return host;
  }
  const auto answer = RunAndRead({"getent", "ahosts", host});
  if (!answer.ok() || answer->second != 0) return "";
  return answer->first.substr(0, answer->first.find_first_of(" \t\n"));
}

absl::StatusOr<UniqueFd> BeginToConnect(const std::string& host, int port) {
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(static_cast<uint16_t>(port))};
  const bool is_v4 = ::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1;
  if (!is_v4) ::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr);
  UniqueFd fd(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result = is_v4
                         ? ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof(v4))
                         : ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
  if (result != 0 && errno != EINPROGRESS) return absl::ErrnoToStatus(errno, "connect");
  return fd;
}

// "" when something listens there, else why it cannot be reached.
std::string TryToReach(const std::string& address, absl::Duration timeout) {
  const auto parsed = ParseAddress(address);
  if (!parsed.has_value()) return "no address";
  const std::string host = Resolve(parsed->host);
  if (host.empty()) return absl::StrCat("the name '", parsed->host, "' is not known there");
  const auto fd = BeginToConnect(host, parsed->port);
  if (!fd.ok()) return std::string(fd.status().message());
  pollfd waits{fd->get(), POLLOUT, 0};
  if (::poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) {
    return "no answer";
  }
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? "" : std::string(absl::ErrnoToStatus(error, "connect").message());
}

absl::StatusOr<Json> HostSide::Reach(const Message& message) {
  const absl::Duration timeout =
      absl::Milliseconds(std::max<int64_t>(100, NumberAt(message.head, "timeout_ms")));
  Json results = Json::array();
  if (const auto list = message.head.find("addresses");
      list != message.head.end() && list->is_array()) {
    for (const Json& address : *list) {
      results.push_back(address.is_string() ? TryToReach(address, timeout) : "no address");
    }
  }
  return Json{{"results", results}};
}

}  // namespace

int ServeSession(int in, int out) {
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(077);
  if (!WriteAll(out, kPreface).ok()) return 1;
  HostSide host(out);
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
