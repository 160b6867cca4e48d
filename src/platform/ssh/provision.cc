#include "platform/ssh/provision.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "base/variables.h"
#include "cluster/address.h"
#include "job/job_tls.h"
#include "job/tf_server.h"
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
constexpr absl::Duration kSkewNoticeThreshold = absl::Seconds(1);
constexpr int64_t kBytesNoticeThreshold = 8 << 20;
constexpr size_t kMaxFilesPerMessage = 2'000;  // keeps a message below its size limit

// Returns by how much the host's clock is ahead, and the host's description of itself.
absl::StatusOr<std::pair<absl::Duration, Json>> QueryHost(SetupClient& session) {
  const absl::Time sent = absl::Now();
  MUSTER_ASSIGN_OR_RETURN(Json info, session.Call({{"op", "info"}}));
  // The host read its clock about half way through the round trip.
  return std::pair{TimeMember(info, "now") - (sent + (absl::Now() - sent) / 2), std::move(info)};
}

std::string DescribeSkew(absl::Duration skew) {
  return absl::StrCat(
      base::DurationToString(absl::Trunc(absl::AbsDuration(skew), absl::Milliseconds(100))),
      skew > absl::ZeroDuration() ? " ahead" : " behind");
}

// Returns the libraries that the trainer needs and the host lacks, according to ldconfig. Not
// fatal: a job that runs commands needs none of them.
absl::StatusOr<std::string> CheckLibraries(SetupClient& session,
                                           const std::vector<std::string>& needed) {
  if (needed.empty()) return "";
  std::string script = "PATH=$PATH:/usr/sbin:/sbin; ldconfig -p | grep -F";
  for (const std::string& name : needed) absl::StrAppend(&script, " -e ", base::ShellQuote(name));
  MUSTER_ASSIGN_OR_RETURN(
      const Json found, session.Call({{"op", "run"}, {"argv", Json::array({"sh", "-c", script})}}));
  if (base::IntMember(found, "exit_code") != 0) return ", libraries unknown (no ldconfig)";
  const std::vector<std::string> missing = NotIn(base::TextMember(found, "output"), needed);
  if (missing.empty()) return ", has the libraries of muster-trainer";
  return absl::StrCat(", missing libraries of muster-trainer: ", absl::StrJoin(missing, " "));
}

struct Payload {
  std::vector<worktree::WorkFile> files;
  worktree::WorkFile trainer;  // no hash: the trainer is not needed
  job::JobTls tls;
};

class Provisioner {
 public:
  Provisioner(const job::Submission& submission, job::HostAssignment& assignment,
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

  // For a change of a running job.
  absl::Status RunForChange(const WorkEdit& edit, bool& touched) {
    MUSTER_RETURN_IF_ERROR(List());
    MUSTER_RETURN_IF_ERROR(ConnectAll());
    // No host is changed before all hosts have the contents.
    MUSTER_RETURN_IF_ERROR(ForEach(sessions_.size(), [&](size_t i) {
      return SendMissing(*sessions_[i], SourcesOf(edit.files));
    }));
    touched = true;
    return ForEach(sessions_.size(), [&](size_t i) -> absl::Status {
      MUSTER_RETURN_IF_ERROR(EditWorkDir(*sessions_[i], assignment_.hosts[i], edit));
      return WriteTrainSection(i);
    });
  }

 private:
  absl::Status ConnectAll() {
    return ForEach(
        sessions_.size(), [&](size_t i) { return Connect(i); }, kMaxConcurrentLogins);
  }

  std::vector<Peer> Peers() const {
    std::vector<Peer> peers;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      peers.push_back({sessions_[i].get(), assignment_.hosts[i].address});
    }
    // Ports that the user fixed are checked too, on the host that has them.
    const cluster::ClusterSpec planned = PlanAddresses(submission_.spec, assignment_, {});
    for (const cluster::TaskId& task : submission_.spec.Tasks()) {
      const auto address = cluster::ParseAddress(planned.AddressOf(task));
      if (!address.has_value() || address->port == 0) continue;
      for (Peer& peer : peers) {
        if (peer.address == address->host) peer.ports.push_back(address->port);
      }
    }
    return peers;
  }

  absl::Status List() {
    MUSTER_ASSIGN_OR_RETURN(
        payload_.files,
        worktree::ListWorkDir(submission_.working_dir,
                              {.home = options_.home,
                               .keys = worktree::CredentialFiles(base::ProcessVariables()),
                               .notice = options_.notice}));
    return absl::OkStatus();
  }

  absl::Status Gather() {
    MUSTER_RETURN_IF_ERROR(List());
    MUSTER_ASSIGN_OR_RETURN(const std::string cache,
                            worktree::WorkDirCache(options_.home, submission_.working_dir));
    MUSTER_RETURN_IF_ERROR(
        worktree::HashFiles(submission_.working_dir, payload_.files, cache).status());
    if (job::NeedsTrainer(submission_.spec)) {
      MUSTER_ASSIGN_OR_RETURN(payload_.trainer, HashTrainer());
    }
    MUSTER_ASSIGN_OR_RETURN(payload_.tls, job::MakeJobTls(submission_.id));
    return absl::OkStatus();
  }

  // Hashes the trainer, unless the cache has the hash of the unchanged file.
  absl::StatusOr<worktree::WorkFile> HashTrainer() const {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(submission_.trainer, error);
    struct stat info {};
    if (error || ::stat(path.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(error ? error.value() : errno, submission_.trainer);
    }
    std::vector<worktree::WorkFile> files = {{.path = path.filename()}};
    worktree::TakeStat(info, files[0]);
    MUSTER_ASSIGN_OR_RETURN(const std::string cache, worktree::WorkDirCache(options_.home, path));
    MUSTER_RETURN_IF_ERROR(worktree::HashFiles(path.parent_path(), files, cache).status());
    return files[0];
  }

  absl::Status Connect(size_t i) {
    job::AssignedHost& host = assignment_.hosts[i];
    MUSTER_ASSIGN_OR_RETURN(sessions_[i],
                            SetupClient::Open(host.spec, options_.agent, options_.interrupted));
    MUSTER_ASSIGN_OR_RETURN(const auto answer, QueryHost(*sessions_[i]));
    const auto& [skew, info] = answer;
    host.cpus = static_cast<int>(base::IntMember(info, "cpus"));
    identities_[i] = base::TextMember(info, "identity");
    if (absl::AbsDuration(skew) > kSkewNoticeThreshold) {
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
      return absl::FailedPreconditionError(absl::StrCat(
          known->second, " and ", name, " are the same machine; list it once, with slots (",
          known->second, ":2) to run several tasks on it"));
    }
    return absl::OkStatus();
  }

  absl::Status Fill(size_t i) {
    job::AssignedHost& host = assignment_.hosts[i];
    SetupClient& session = *sessions_[i];
    MUSTER_ASSIGN_OR_RETURN(const Json job, session.Call({{"op", "job"},
                                                          {"job", submission_.id},
                                                          {"former", submission_.resumed_from}}));
    host.folder = base::TextMember(job, "folder");
    MUSTER_RETURN_IF_ERROR(SendMissing(session, All()));
    MUSTER_RETURN_IF_ERROR(MakeWorkDir(session, host));
    if (!payload_.trainer.sha256.empty()) MUSTER_RETURN_IF_ERROR(PlaceTrainer(session, host));
    MUSTER_RETURN_IF_ERROR(WriteTrainSection(i));
    if (job::NeedsTfServer(submission_.spec)) {
      MUSTER_RETURN_IF_ERROR(WriteThere(session, supervise::JobDir(host.folder).tf_server(),
                                        std::string(job::TfServerProgram())));
    }
    // Keys are written even for a single task: an update may add more.
    const std::string tls = base::JoinPath(host.folder, "tls");
    MUSTER_RETURN_IF_ERROR(
        WriteThere(session, base::JoinPath(tls, "ca.crt"), payload_.tls.authority));
    MUSTER_RETURN_IF_ERROR(
        WriteThere(session, base::JoinPath(tls, "tls.crt"), payload_.tls.certificate));
    return WriteThere(session, base::JoinPath(tls, "tls.key"), payload_.tls.key);
  }

  absl::Status WriteTrainSection(size_t i) {
    if (submission_.spec.train.is_null()) return absl::OkStatus();
    const supervise::JobDir dir(assignment_.hosts[i].folder);
    Json train = submission_.spec.train;
    MapPaths(base::JoinPath(dir.path(), "work"), train);
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
    const bool sent = std::any_of(
        payload_.files.begin(), payload_.files.end(), [&](const worktree::WorkFile& file) {
          return file.path == path || absl::StartsWith(file.path, absl::StrCat(path, "/"));
        });
    // A path that was not sent stays unchanged: the host may have it.
    if (sent) value = base::JoinPath(work, path);
  }

  static absl::Status WriteThere(SetupClient& session, const std::string& path,
                                 const std::string& content) {
    return session.Call({{"op", "file"}, {"path", path}}, content).status();
  }

  struct Source {
    std::string path;
    const worktree::WorkFile* file;
  };
  using Sources = std::map<std::string, Source>;  // by hash

  Sources SourcesOf(const std::vector<worktree::WorkFile>& files) const {
    Sources sources;
    for (const worktree::WorkFile& file : files) {
      if (file.is_link()) continue;
      sources[file.sha256] = {base::JoinPath(submission_.working_dir, file.path), &file};
    }
    return sources;
  }

  // Returns all files that the job needs.
  Sources All() const {
    Sources sources = SourcesOf(payload_.files);
    const worktree::WorkFile& trainer = payload_.trainer;
    if (!trainer.sha256.empty()) sources[trainer.sha256] = {submission_.trainer, &trainer};
    return sources;
  }

  // Removes the files that the host has already.
  static absl::Status KeepMissing(SetupClient& session, Sources& sources) {
    Sources missing;
    for (auto next = sources.begin(); next != sources.end();) {
      Json sizes = Json::object();
      for (; next != sources.end() && sizes.size() < kMaxFilesPerMessage; ++next) {
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

  absl::Status SendMissing(SetupClient& session, Sources wanted) {
    MUSTER_RETURN_IF_ERROR(KeepMissing(session, wanted));
    int64_t bytes = 0;
    for (const auto& [hash, source] : wanted) bytes += source.file->size;
    if (bytes >= kBytesNoticeThreshold) {
      options_.notice(absl::StrCat("sending ",
                                   base::Plural(static_cast<int64_t>(wanted.size()), "file"), " (",
                                   base::FormatBytes(bytes), ") to ", session.host().name));
    }
    for (const auto& [hash, source] : wanted) {
      MUSTER_RETURN_IF_ERROR(session.SendFile(source.path, *source.file));
    }
    return absl::OkStatus();
  }

  absl::Status MakeWorkDir(SetupClient& session, const job::AssignedHost& host) {
    size_t next = 0;
    do {
      Json files = Json::array();
      const bool first = next == 0;
      for (; next < payload_.files.size() && files.size() < kMaxFilesPerMessage; ++next) {
        files.push_back(FileToJson(payload_.files[next]));
      }
      MUSTER_RETURN_IF_ERROR(session
                                 .Call({{"op", "work"},
                                        {"folder", base::JoinPath(host.folder, "work")},
                                        {"files", files},
                                        {"first", first},
                                        {"last", next == payload_.files.size()}})
                                 .status());
    } while (next < payload_.files.size());
    return absl::OkStatus();
  }

  static absl::Status EditWorkDir(SetupClient& session, const job::AssignedHost& host,
                                  const WorkEdit& edit) {
    Json removed = edit.removed;
    for (size_t next = 0; next < edit.files.size() || !removed.empty();) {
      Json files = Json::array();
      for (; next < edit.files.size() && files.size() < kMaxFilesPerMessage; ++next) {
        files.push_back(FileToJson(edit.files[next]));
      }
      MUSTER_RETURN_IF_ERROR(session
                                 .Call({{"op", "edit"},
                                        {"folder", base::JoinPath(host.folder, "work")},
                                        {"files", files},
                                        {"removed", std::exchange(removed, Json::array())}})
                                 .status());
    }
    return absl::OkStatus();
  }

  static Json FileToJson(const worktree::WorkFile& file) {
    return {{"path", file.path},
            {"mode", file.mode},
            {"link", file.link_target},
            {"sha256", file.sha256}};
  }

  absl::Status PlaceTrainer(SetupClient& session, job::AssignedHost& host) {
    MUSTER_ASSIGN_OR_RETURN(const Json program,
                            session.Call({{"op", "program"}, {"sha256", payload_.trainer.sha256}}));
    host.trainer = base::TextMember(program, "path");
    // A test run finds missing libraries before the job starts.
    MUSTER_ASSIGN_OR_RETURN(
        const Json tried,
        session.Call({{"op", "run"}, {"argv", Json::array({host.trainer, "--help"})}}));
    if (base::IntMember(tried, "exit_code") == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        host.spec.name, ": muster-trainer does not run there: ",
        absl::StripAsciiWhitespace(base::TextMember(tried, "output")),
        "; install its libraries (on Debian: libtorch1.13, libgrpc++1.51), or give the roles a "
        "command"));
  }

  const job::Submission& submission_;
  job::HostAssignment& assignment_;
  const ProvisionOptions& options_;
  Payload payload_;
  std::vector<std::unique_ptr<SetupClient>> sessions_;
  std::vector<std::string> identities_;
};

}  // namespace

absl::StatusOr<std::string> PeerAddress(const job::HostSpec& host) {
  std::vector<std::string> argv = SshArgv(host, "true", Sharing::kOwn);
  argv.insert(argv.end() - 4, "-G");  // -G prints the configuration without connecting
  const auto result = process::Run({.argv = argv, .env = SshEnvironment()}, kConfigurationTimeout,
                                   /*max_bytes=*/1 << 20);
  if (absl::IsNotFound(result.status())) {
    return absl::NotFoundError("ssh is not installed; install openssh-client");
  }
  if (!result.ok()) return base::Annotate(result.status(), host.name);
  for (absl::string_view line : absl::StrSplit(result->output, '\n')) {
    if (absl::ConsumePrefix(&line, "hostname ")) return std::string(line);
  }
  return host.address;
}

std::vector<HostFinding> Examine(const std::vector<job::HostSpec>& hosts,
                                 const platform::AgentProgram& agent) {
  std::vector<HostFinding> findings(hosts.size());
  std::vector<std::unique_ptr<SetupClient>> sessions(hosts.size());
  std::vector<Peer> peers(hosts.size());
  const std::vector<std::string> needed =
      NeededLibraries(base::JoinPath(base::FolderOf(agent.path), "muster-trainer"));
  const auto examine = [&](size_t i) -> absl::StatusOr<std::string> {
    MUSTER_ASSIGN_OR_RETURN(peers[i].address, PeerAddress(hosts[i]));
    MUSTER_ASSIGN_OR_RETURN(sessions[i], SetupClient::Open(hosts[i], agent, [] { return false; }));
    MUSTER_ASSIGN_OR_RETURN(const auto answer, QueryHost(*sessions[i]));
    const auto& [skew, info] = answer;
    peers[i].session = sessions[i].get();
    MUSTER_ASSIGN_OR_RETURN(const std::string libraries, CheckLibraries(*sessions[i], needed));
    return absl::StrCat(base::TextMember(info, "system"), " ", base::TextMember(info, "machine"),
                        ", ", base::IntMember(info, "cpus"), " cpus, ",
                        base::FormatBytes(base::IntMember(info, "memory")), " of memory, ",
                        base::FormatBytes(base::IntMember(info, "free")), " free in ",
                        base::TextMember(info, "root"), ", clock ", DescribeSkew(skew), libraries);
  };
  ForEach(
      hosts.size(),
      [&](size_t i) {
        const auto result = examine(i);
        findings[i] = {.host = hosts[i].name,
                       .status = result.status(),
                       .detail = result.ok() ? *result : std::string(result.status().message())};
        return absl::OkStatus();
      },
      kMaxConcurrentLogins)
      .IgnoreError();
  std::erase_if(peers, [](const Peer& peer) { return peer.session == nullptr; });
  const absl::Status paths = CheckConnectivity(peers);
  findings.push_back({.host = "connectivity between hosts",
                      .status = paths,
                      .detail = paths.ok() ? "open" : std::string(paths.message())});
  return findings;
}

absl::Status ProvisionHosts(const job::Submission& submission, job::HostAssignment& assignment,
                            const ProvisionOptions& options) {
  assignment.agent = RemotePath(options.agent);
  return Provisioner(submission, assignment, options).Run();
}

WorkEdit EditBetween(const worktree::Version& before, const worktree::Version& after) {
  std::map<std::string, const worktree::WorkFile*> files;
  for (const worktree::WorkFile& file : after.files) files[file.path] = &file;
  WorkEdit edit;
  for (const worktree::FileChange& change : worktree::Compare(before, after)) {
    if (change.kind == worktree::FileChange::Kind::kRemoved) {
      edit.removed.push_back(change.path);
    } else {
      edit.files.push_back(*files.at(change.path));
    }
  }
  return edit;
}

absl::Status SendChanges(const job::Submission& submission, job::HostAssignment assignment,
                         const WorkEdit& edit, const ProvisionOptions& options, bool& touched) {
  return Provisioner(submission, assignment, options).RunForChange(edit, touched);
}

}  // namespace muster::ssh
