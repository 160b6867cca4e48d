#include "platform/ssh/provision.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "base/variables.h"
#include "cluster/address.h"
#include "job/job_tls.h"
#include "platform/ssh/command.h"
#include "platform/ssh/connectivity.h"
#include "platform/ssh/libraries.h"
#include "platform/ssh/protocol.h"
#include "process/run.h"
#include "supervise/job_dir.h"
#include "worktree/credentials.h"
#include "worktree/worktree.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kConfigurationTimeout = absl::Seconds(20);
constexpr absl::Duration kNotableSkew = absl::Seconds(1);
constexpr int64_t kNotableBytes = 8 << 20;
constexpr size_t kFilesAtOnce = 2'000;  // per message, whose size is limited

// Returns by how much the host's clock is ahead, and the host's description of itself.
absl::StatusOr<std::pair<absl::Duration, Json>> Ask(SetupClient& session) {
  const absl::Time asked = absl::Now();
  MUSTER_ASSIGN_OR_RETURN(Json info, session.Call({{"op", "info"}}));
  // The host read its clock about half way through the round trip.
  return std::pair{TimeAt(info, "now") - (asked + (absl::Now() - asked) / 2), std::move(info)};
}

std::string DescribeSkew(absl::Duration skew) {
  return absl::StrCat(
      DurationToString(absl::Trunc(absl::AbsDuration(skew), absl::Milliseconds(100))),
      skew > absl::ZeroDuration() ? " ahead" : " behind");
}

// Returns the libraries that the trainer needs and the host lacks, according to ldconfig. Not
// fatal: a job that runs commands needs none of them.
absl::StatusOr<std::string> CheckLibraries(SetupClient& session,
                                           const std::vector<std::string>& needed) {
  if (needed.empty()) return "";
  std::string script = "PATH=$PATH:/usr/sbin:/sbin; ldconfig -p | grep -F";
  for (const std::string& name : needed) absl::StrAppend(&script, " -e ", ShellQuote(name));
  MUSTER_ASSIGN_OR_RETURN(
      const Json found, session.Call({{"op", "run"}, {"argv", Json::array({"sh", "-c", script})}}));
  if (NumberAt(found, "exit_code") != 0) return ", libraries not known (no ldconfig)";
  const std::vector<std::string> missing = NotIn(TextAt(found, "output"), needed);
  if (missing.empty()) return ", has what muster-trainer needs";
  return absl::StrCat(", lacks for muster-trainer: ", absl::StrJoin(missing, " "));
}

struct Cargo {
  std::vector<WorkFile> files;
  WorkFile trainer;  // no hash: the trainer is not needed
  JobTls tls;
};

class Preparation {
 public:
  Preparation(const Submission& submission, HostAssignment& assignment,
              const ProvisionOptions& options)
      : submission_(submission),
        assignment_(assignment),
        options_(options),
        sessions_(assignment.hosts.size()),
        identities_(assignment.hosts.size()) {}

  absl::Status Run() {
    // Hashing overlaps with connecting.
    absl::Status gathered;
    std::jthread gathering([&] { gathered = Gather(); });
    const absl::Status connected = ConnectAll();
    gathering.join();
    MUSTER_RETURN_IF_ERROR(connected);
    MUSTER_RETURN_IF_ERROR(gathered);
    MUSTER_RETURN_IF_ERROR(CheckDistinct());
    MUSTER_RETURN_IF_ERROR(ForEach(sessions_.size(), [&](size_t i) { return Fill(i); }));
    return CheckConnectivity(Peers());
  }

  absl::Status RunForChange() {
    MUSTER_RETURN_IF_ERROR(List());
    MUSTER_RETURN_IF_ERROR(ConnectAll());
    return ForEach(sessions_.size(), [&](size_t i) { return WriteTrainSection(i); });
  }

 private:
  absl::Status ConnectAll() {
    return ForEach(
        sessions_.size(), [&](size_t i) { return Connect(i); }, kConnectsAtOnce);
  }

  std::vector<Peer> Peers() const {
    std::vector<Peer> peers;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      peers.push_back({sessions_[i].get(), assignment_.hosts[i].address});
    }
    const ClusterSpec planned = PlanAddresses(submission_.spec, assignment_, {});
    for (const TaskId& task : submission_.spec.Tasks()) {
      const auto address = ParseAddress(planned.AddressOf(task));
      if (!address.has_value() || address->port == 0) continue;
      for (Peer& peer : peers) {
        if (peer.address == address->host) peer.ports.push_back(address->port);
      }
    }
    return peers;
  }

  bool NeedsTrainer() const {
    return std::any_of(submission_.spec.roles.begin(), submission_.spec.roles.end(),
                       [](const RoleSpec& role) { return role.command.empty(); });
  }

  absl::Status List() {
    MUSTER_ASSIGN_OR_RETURN(cargo_.files, ListWorkDir(submission_.working_dir,
                                                      {.home = options_.home,
                                                       .keys = CredentialFiles(ProcessVariables()),
                                                       .notice = options_.notice}));
    return absl::OkStatus();
  }

  absl::Status Gather() {
    MUSTER_RETURN_IF_ERROR(List());
    MUSTER_ASSIGN_OR_RETURN(const std::string cache,
                            WorkDirCache(options_.home, submission_.working_dir));
    MUSTER_RETURN_IF_ERROR(HashFiles(submission_.working_dir, cargo_.files, cache).status());
    if (NeedsTrainer()) {
      MUSTER_ASSIGN_OR_RETURN(cargo_.trainer, HashTrainer());
    }
    MUSTER_ASSIGN_OR_RETURN(cargo_.tls, MakeJobTls(submission_.id));
    return absl::OkStatus();
  }

  // Hashes the trainer, unless the cache has the hash of the unchanged file.
  absl::StatusOr<WorkFile> HashTrainer() const {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(submission_.trainer, error);
    struct stat info {};
    if (error || ::stat(path.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(error ? error.value() : errno, submission_.trainer);
    }
    std::vector<WorkFile> files = {{.path = path.filename()}};
    TakeStat(info, files[0]);
    MUSTER_ASSIGN_OR_RETURN(const std::string cache, WorkDirCache(options_.home, path));
    MUSTER_RETURN_IF_ERROR(HashFiles(path.parent_path(), files, cache).status());
    return files[0];
  }

  absl::Status Connect(size_t i) {
    AssignedHost& host = assignment_.hosts[i];
    MUSTER_ASSIGN_OR_RETURN(sessions_[i],
                            SetupClient::Open(host.spec, options_.agent, options_.interrupted));
    MUSTER_ASSIGN_OR_RETURN(const auto answer, Ask(*sessions_[i]));
    const auto& [skew, info] = answer;
    host.cpus = static_cast<int>(NumberAt(info, "cpus"));
    identities_[i] = TextAt(info, "identity");
    if (absl::AbsDuration(skew) > kNotableSkew) {
      options_.notice(absl::StrCat("the clock of ", host.spec.name, " is ", DescribeSkew(skew),
                                   "; times are shown by the clock of this machine"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckDistinct() const {
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < identities_.size(); ++i) {
      const std::string& name = assignment_.hosts[i].spec.name;
      const auto [known, is_new] = names.emplace(identities_[i], name);
      if (is_new) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(known->second, " and ", name, " are one machine: name it once, with slots (",
                       known->second, ":2) when it may hold several tasks"));
    }
    return absl::OkStatus();
  }

  absl::Status Fill(size_t i) {
    AssignedHost& host = assignment_.hosts[i];
    SetupClient& session = *sessions_[i];
    MUSTER_ASSIGN_OR_RETURN(const Json job, session.Call({{"op", "job"},
                                                          {"job", submission_.id},
                                                          {"former", submission_.resumed_from}}));
    host.folder = TextAt(job, "folder");
    MUSTER_RETURN_IF_ERROR(SendMissing(session));
    MUSTER_RETURN_IF_ERROR(MakeWorkDir(session, host));
    if (!cargo_.trainer.sha256.empty()) MUSTER_RETURN_IF_ERROR(PlaceTrainer(session, host));
    MUSTER_RETURN_IF_ERROR(WriteTrainSection(i));
    // Keys are written even for a single task: an update may add more.
    const std::string tls = JoinPath(host.folder, "tls");
    MUSTER_RETURN_IF_ERROR(WriteThere(session, JoinPath(tls, "ca.crt"), cargo_.tls.authority));
    MUSTER_RETURN_IF_ERROR(WriteThere(session, JoinPath(tls, "tls.crt"), cargo_.tls.certificate));
    return WriteThere(session, JoinPath(tls, "tls.key"), cargo_.tls.key);
  }

  absl::Status WriteTrainSection(size_t i) {
    if (submission_.spec.train.is_null()) return absl::OkStatus();
    const JobDir dir(assignment_.hosts[i].folder);
    Json train = submission_.spec.train;
    MapPaths(JoinPath(dir.path(), "work"), train);
    return WriteThere(*sessions_[i], dir.train_config(), train.dump(2));
  }

  // Rewrites paths of files that were sent to their location on the host.
  void MapPaths(const std::string& work, Json& value) const {
    if (value.is_structured()) {
      for (Json& member : value) MapPaths(work, member);
      return;
    }
    if (!value.is_string()) return;
    absl::string_view path = value.get_ref<const std::string&>();
    if (path == submission_.working_dir) {
      value = work;
      return;
    }
    if (!absl::ConsumePrefix(&path, absl::StrCat(submission_.working_dir, "/"))) return;
    const bool sent =
        std::any_of(cargo_.files.begin(), cargo_.files.end(), [&](const WorkFile& file) {
          return file.path == path || absl::StartsWith(file.path, absl::StrCat(path, "/"));
        });
    if (sent) value = JoinPath(work, path);
  }

  static absl::Status WriteThere(SetupClient& session, const std::string& path,
                                 const std::string& content) {
    return session.Call({{"op", "file"}, {"path", path}}, content).status();
  }

  struct Source {
    std::string path;
    const WorkFile* file;
  };
  using Sources = std::map<std::string, Source>;  // by hash

  // Returns all files that the job needs.
  Sources All() const {
    Sources sources;
    for (const WorkFile& file : cargo_.files) {
      if (file.is_link()) continue;
      sources[file.sha256] = {JoinPath(submission_.working_dir, file.path), &file};
    }
    const WorkFile& trainer = cargo_.trainer;
    if (!trainer.sha256.empty()) sources[trainer.sha256] = {submission_.trainer, &trainer};
    return sources;
  }

  // Removes the files that the host has already.
  static absl::Status KeepMissing(SetupClient& session, Sources& sources) {
    Sources missing;
    for (auto next = sources.begin(); next != sources.end();) {
      Json sizes = Json::object();
      for (; next != sources.end() && sizes.size() < kFilesAtOnce; ++next) {
        sizes[next->first] = next->second.file->size;
      }
      MUSTER_ASSIGN_OR_RETURN(const Json answer,
                              session.Call({{"op", "missing"}, {"files", sizes}}));
      for (const Json& hash : answer.value("missing", Json::array())) {
        if (hash.is_string() && sources.contains(hash)) missing[hash] = sources[hash];
      }
    }
    sources = std::move(missing);
    return absl::OkStatus();
  }

  absl::Status SendMissing(SetupClient& session) {
    Sources wanted = All();
    MUSTER_RETURN_IF_ERROR(KeepMissing(session, wanted));
    int64_t bytes = 0;
    for (const auto& [hash, source] : wanted) bytes += source.file->size;
    if (bytes >= kNotableBytes) {
      options_.notice(absl::StrCat("sending ", Plural(static_cast<int64_t>(wanted.size()), "file"),
                                   " (", FormatBytes(bytes), ") to ", session.host().name));
    }
    for (const auto& [hash, source] : wanted) {
      MUSTER_RETURN_IF_ERROR(session.SendFile(source.path, *source.file));
    }
    return absl::OkStatus();
  }

  absl::Status MakeWorkDir(SetupClient& session, const AssignedHost& host) {
    size_t next = 0;
    do {
      Json files = Json::array();
      const bool first = next == 0;
      for (; next < cargo_.files.size() && files.size() < kFilesAtOnce; ++next) {
        const WorkFile& file = cargo_.files[next];
        files.push_back({{"path", file.path},
                         {"mode", file.mode},
                         {"link", file.link_target},
                         {"sha256", file.sha256}});
      }
      MUSTER_RETURN_IF_ERROR(session
                                 .Call({{"op", "work"},
                                        {"folder", JoinPath(host.folder, "work")},
                                        {"files", files},
                                        {"first", first},
                                        {"last", next == cargo_.files.size()}})
                                 .status());
    } while (next < cargo_.files.size());
    return absl::OkStatus();
  }

  absl::Status PlaceTrainer(SetupClient& session, AssignedHost& host) {
    MUSTER_ASSIGN_OR_RETURN(const Json program,
                            session.Call({{"op", "program"}, {"sha256", cargo_.trainer.sha256}}));
    host.trainer = TextAt(program, "path");
    MUSTER_ASSIGN_OR_RETURN(
        const Json tried,
        session.Call({{"op", "run"}, {"argv", Json::array({host.trainer, "--help"})}}));
    if (NumberAt(tried, "exit_code") == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        host.spec.name, ": muster-trainer does not run there: ",
        absl::StripAsciiWhitespace(TextAt(tried, "output")),
        "; install what it needs (on Debian: libtorch1.13, libgrpc++1.51), or give the roles a "
        "command"));
  }

  const Submission& submission_;
  HostAssignment& assignment_;
  const ProvisionOptions& options_;
  Cargo cargo_;
  std::vector<std::unique_ptr<SetupClient>> sessions_;
  std::vector<std::string> identities_;
};

}  // namespace

absl::StatusOr<std::string> PeerAddress(const HostSpec& host) {
  std::vector<std::string> argv = SshArgv(host, "true", Sharing::kOwn);
  argv.insert(argv.end() - 4, "-G");  // -G prints the configuration without connecting
  const auto said =
      Run({.argv = argv, .env = SshEnvironment()}, kConfigurationTimeout, /*max_bytes=*/1 << 20);
  if (absl::IsNotFound(said.status())) {
    return absl::NotFoundError("hosts are reached by ssh, which is not installed (openssh-client)");
  }
  if (!said.ok()) return Annotate(said.status(), host.name);
  for (absl::string_view line : absl::StrSplit(said->output, '\n')) {
    if (absl::ConsumePrefix(&line, "hostname ")) return std::string(line);
  }
  return host.address;
}

std::vector<HostFinding> Examine(const std::vector<HostSpec>& hosts, const AgentProgram& agent) {
  std::vector<HostFinding> findings(hosts.size());
  std::vector<std::unique_ptr<SetupClient>> sessions(hosts.size());
  std::vector<Peer> peers(hosts.size());
  const std::vector<std::string> needed =
      NeededLibraries(JoinPath(FolderOf(agent.path), "muster-trainer"));
  const auto examine = [&](size_t i) -> absl::StatusOr<std::string> {
    MUSTER_ASSIGN_OR_RETURN(peers[i].address, PeerAddress(hosts[i]));
    MUSTER_ASSIGN_OR_RETURN(sessions[i], SetupClient::Open(hosts[i], agent, [] { return false; }));
    MUSTER_ASSIGN_OR_RETURN(const auto answer, Ask(*sessions[i]));
    const auto& [skew, info] = answer;
    peers[i].session = sessions[i].get();
    MUSTER_ASSIGN_OR_RETURN(const std::string libraries, CheckLibraries(*sessions[i], needed));
    return absl::StrCat(TextAt(info, "system"), " ", TextAt(info, "machine"), ", ",
                        NumberAt(info, "cpus"), " cpus, ", FormatBytes(NumberAt(info, "memory")),
                        " of memory, ", FormatBytes(NumberAt(info, "free")), " free in ",
                        TextAt(info, "root"), ", clock ", DescribeSkew(skew), libraries);
  };
  ForEach(
      hosts.size(),
      [&](size_t i) {
        const auto said = examine(i);
        findings[i] = {.host = hosts[i].name,
                       .status = said.status(),
                       .detail = said.ok() ? *said : std::string(said.status().message())};
        return absl::OkStatus();
      },
      kConnectsAtOnce)
      .IgnoreError();
  std::erase_if(peers, [](const Peer& peer) { return peer.session == nullptr; });
  const absl::Status paths = CheckConnectivity(peers);
  findings.push_back({.host = "paths between hosts",
                      .status = paths,
                      .detail = paths.ok() ? "open" : std::string(paths.message())});
  return findings;
}

absl::Status ProvisionHosts(const Submission& submission, HostAssignment& assignment,
                            const ProvisionOptions& options) {
  assignment.agent = options.agent.RemotePath();
  return Preparation(submission, assignment, options).Run();
}

absl::Status SendTrainSection(const Submission& submission, HostAssignment assignment,
                              const ProvisionOptions& options) {
  return Preparation(submission, assignment, options).RunForChange();
}

}  // namespace muster::ssh
