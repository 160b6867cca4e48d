// muster notebook: starts Jupyter for a job on this machine, or prints how to reach the one beside
// a job in a cluster.
#include "cli/cluster/notebook.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/job_file.h"
#include "cli/job/target_options.h"
#include "jobs/control/notebook.h"
#include "jobs/find/lookup.h"
#include "jobs/notebook/jupyter.h"
#include "jobs/notebook/password.h"
#include "jobs/notebook/server.h"
#include "jobs/notebook/session.h"
#include "jobs/notebook/subject.h"
#include "manifest/notebook.h"
#include "process/held_signals.h"
#include "process/spawn.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

constexpr char kPasswordVariable[] = "MUSTER_NOTEBOOK_PASSWORD";
// Another `muster notebook` may be starting the same notebook.
constexpr absl::Duration kOtherStart = absl::Minutes(2);

constexpr int kMaxPort = 65535;

struct NotebookCommand {
  std::string job;
  TargetOptions target;
  std::string jupyter;
  std::string password_file;
  bool new_password = false;
  int port = 0;
  int timeout = 60;
  bool detach = false;
  bool stop = false;
};

// The subject of a notebook on this machine, or the submission of a job with one in a cluster.
struct Where {
  std::optional<jobs::NotebookSubject> here;
  std::optional<job::Submission> cluster;
};

absl::StatusOr<Where> InCluster(Context& context, NotebookCommand& command,
                                const std::string& platform) {
  command.target.platform = platform;
  Where where;
  MUSTER_ASSIGN_OR_RETURN(where.cluster, ClusterSubmission(context, command.job, command.target));
  return where;
}

absl::StatusOr<Where> OfFile(Context& context, NotebookCommand& command) {
  jobs::Service& service = context.jobs();
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission, LoadJobFile(context, command.job));
  // A file that describes a notebook has it in a cluster, unless --on names another platform.
  if (command.target.platform.empty() && !submission.spec.notebook.is_null()) {
    return InCluster(context, command, jobs::NotebookPlatform(service));
  }
  MUSTER_ASSIGN_OR_RETURN(submission.target, command.target.ToTarget());
  Where where;
  MUSTER_ASSIGN_OR_RETURN(where.here, jobs::SubjectOfFile(service, std::move(submission)));
  return where;
}

absl::StatusOr<Where> OfJob(Context& context, NotebookCommand& command) {
  jobs::Service& service = context.jobs();
  MUSTER_ASSIGN_OR_RETURN(const jobs::Selection selection, command.target.ToSelection());
  const auto job = command.job.empty() ? jobs::LatestJob(service)
                                       : jobs::FindJob(service, command.job, selection);
  if (absl::IsNotFound(job.status()) && !command.job.empty() && selection.platform.empty()) {
    // Another client may have started it in the cluster.
    const std::string platform = jobs::NotebookPlatform(service);
    auto found = InCluster(context, command, platform);
    if (found.ok() || absl::IsNotFound(found.status())) return found;
    return absl::NotFoundError(
        absl::StrCat(job.status().message(), "; on ", platform, ": ", found.status().message()));
  }
  MUSTER_RETURN_IF_ERROR(job.status());
  Where where;
  if (jobs::CheckHasNotebooks(service, job->platform).ok()) {
    MUSTER_ASSIGN_OR_RETURN(where.cluster, supervise::JobDir(job->directory).LoadSubmission());
  } else {
    MUSTER_ASSIGN_OR_RETURN(where.here, jobs::SubjectOf(service, *job));
  }
  return where;
}

absl::StatusOr<Where> Locate(Context& context, NotebookCommand& command) {
  jobs::Service& service = context.jobs();
  const std::string named = command.target.platform.empty() ? command.target.FirstGiven().second
                                                            : command.target.platform;
  if (!named.empty()) {
    MUSTER_RETURN_IF_ERROR(service.platform(named).status());
    if (!command.job.empty() && jobs::CheckHasNotebooks(service, named).ok()) {
      return InCluster(context, command, named);
    }
  }
  return !command.job.empty() && IsFile(context, command.job) ? OfFile(context, command)
                                                              : OfJob(context, command);
}

// A password as Jupyter gets it, and what the user is told about it.
struct Password {
  std::string hash;
  std::string notice;
};

Password Hashed(absl::string_view password, std::string notice) {
  return {manifest::PasswordHash(password, manifest::RandomSalt()), std::move(notice)};
}

// Asks for a password twice. Returns nullopt if there is nobody to ask or the answer is empty.
absl::StatusOr<std::optional<std::string>> AskPassword(Terminal& err) {
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const auto password,
                            AskSecret(err, "Password of the notebook (empty: a generated one): "));
    if (!password.has_value() || password->empty()) return std::nullopt;
    if (const absl::Status valid = jobs::CheckPassword(*password); !valid.ok()) {
      err.Note(valid.message());
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const auto again, AskSecret(err, "Once more: "));
    if (again == password) return password;
    err.Note("the two passwords differ");
  }
}

absl::StatusOr<Password> ChoosePassword(Context& context, const NotebookCommand& command,
                                        const jobs::NotebookSubject& subject) {
  if (!command.password_file.empty()) {
    MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
    MUSTER_ASSIGN_OR_RETURN(
        const std::string password,
        jobs::ReadPasswordFile(base::AbsolutePath(command.password_file, context.working_dir())));
    return Hashed(password, absl::StrCat("The password is that of ", command.password_file, "."));
  }
  if (const char* password = std::getenv(kPasswordVariable)) {
    MUSTER_RETURN_IF_ERROR(base::Annotate(jobs::CheckPassword(password), kPasswordVariable));
    return Hashed(password, absl::StrCat("The password is that of ", kPasswordVariable, "."));
  }
  if (!command.new_password && !subject.password.empty()) {
    const absl::Status valid = jobs::CheckPassword(subject.password);
    if (valid.ok()) return Hashed(subject.password, "The password is the job file's.");
    context.err().Note(absl::StrCat("job file: ", valid.message(), "; it is not used"));
  }
  if (!command.new_password) {
    const auto config = base::ReadFile(subject.folder.config());
    const std::string kept = config.ok() ? jobs::HashInConfig(*config) : "";
    if (!kept.empty()) {
      return Password{kept,
                      "The password is that of the last time; --new-password sets another one."};
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const auto asked, AskPassword(context.err()));
  if (asked.has_value()) return Hashed(*asked, "The password is the one that you have typed.");
  const std::string generated = jobs::GeneratePassword();
  return Hashed(generated,
                absl::StrCat("Password: ", generated, "  (not stored, not shown again)"));
}

std::string CommandFor(const NotebookCommand& command, const jobs::NotebookSubject& subject) {
  return absl::StrCat("muster notebook ",
                      base::ShellQuote(command.job.empty() ? subject.job : command.job));
}

void PrintLink(Terminal& out, const jobs::NotebookSubject& subject, const std::string& url) {
  out.PrintLine(absl::StrCat("The notebook of ", subject.job, " is ready:\n  ", url));
}

// Follows the notebook from its start to its end, or until it is ready if it is detached.
class Follower {
 public:
  using Message = jobs::NotebookSession::Message;

  Follower(Context& context, const NotebookCommand& command, const jobs::NotebookSubject& subject,
           jobs::NotebookSession session)
      : context_(context), command_(command), subject_(subject), session_(std::move(session)) {}

  // Calls `on_ready` once Jupyter answers. `held` holds the signals that end this command.
  absl::StatusOr<int> Run(const process::HeldSignals& held,
                          const std::function<void(const std::string& url)>& on_ready) {
    const base::UniqueFd signals(::signalfd(-1, &held.set(), SFD_CLOEXEC | SFD_NONBLOCK));
    for (;;) {
      while (const auto message = session_.Read()) {
        if (message->kind != Message::Kind::kReady) return Finish(*message);
        on_ready(message->text);
        context_.out().Flush();
        if (command_.detach) return kSuccess;
      }
      pollfd waiting[2] = {{session_.fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
      ::poll(waiting, 2, -1);
      signalfd_siginfo info{};
      while (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) Interrupt();
    }
  }

 private:
  void Interrupt() {
    if (++interrupts_ == 1) context_.err().Note("stopping Jupyter and its kernels");
    context_.err().Flush();
    session_.Stop(/*immediately=*/interrupts_ > 1);
  }

  absl::StatusOr<int> Finish(const Message& message) {
    session_.Join();
    if (message.kind == Message::Kind::kFailed && interrupts_ == 0) {
      return absl::FailedPreconditionError(message.text);
    }
    if (interrupts_ > 0) return kInterrupted;
    if (!message.ok) return absl::AbortedError(message.text);
    context_.err().Note(absl::StrCat("the notebook of ", subject_.job, " has ended"));
    return kSuccess;
  }

  Context& context_;
  const NotebookCommand& command_;
  const jobs::NotebookSubject& subject_;
  jobs::NotebookSession session_;
  int interrupts_ = 0;
};

// Returns true if the notebook is running already, and prints its link.
absl::StatusOr<bool> ShowRunning(Context& context, const NotebookCommand& command,
                                 const jobs::NotebookSubject& subject) {
  const auto running = jobs::AwaitRunningNotebook(subject.folder, absl::Seconds(command.timeout));
  if (!running.has_value()) return false;
  if (!running->ready) {
    return absl::DeadlineExceededError(
        absl::StrCat("the notebook of ", subject.job,
                     " is starting, but does not answer; its log is ", subject.folder.log()));
  }
  PrintLink(context.out(), subject, running->url);
  if (command.port > 0 || command.new_password || !command.password_file.empty()) {
    context.err().Note(absl::StrCat("it was running already, with its port and password; `",
                                    CommandFor(command, subject), " --stop` ends it"));
  }
  return true;
}

absl::StatusOr<int> StartHere(Context& context, const NotebookCommand& command,
                              const jobs::NotebookSubject& subject) {
  const process::HeldSignals held;
  MUSTER_RETURN_IF_ERROR(subject.folder.Create());
  MUSTER_ASSIGN_OR_RETURN(
      std::optional<base::FileLock> lock,
      base::FileLock::Acquire(subject.folder.start_lock(),
                              {.timeout = kOtherStart, .cancelled = context.jobs().interrupted()}));
  MUSTER_ASSIGN_OR_RETURN(const bool running, ShowRunning(context, command, subject));
  if (running) return kSuccess;
  if (const std::string ended = jobs::HowNotebookEnded(subject.folder); !ended.empty()) {
    context.err().Note(absl::StrCat("the last notebook of ", subject.job, ": ", ended));
  }
  // Jupyter is looked for before a password is asked for.
  MUSTER_RETURN_IF_ERROR(
      jobs::FindJupyter(command.jupyter, process::CurrentEnvironment(), context.working_dir())
          .status());
  Password password;
  {
    const process::ReleasedSignals released({SIGINT, SIGTERM, SIGHUP});
    MUSTER_ASSIGN_OR_RETURN(password, ChoosePassword(context, command, subject));
  }
  MUSTER_ASSIGN_OR_RETURN(const jobs::PreparedNotebook prepared,
                          jobs::PrepareNotebook(subject, {.jupyter = command.jupyter,
                                                          .jupyter_folder = context.working_dir(),
                                                          .password_hash = password.hash,
                                                          .port = command.port,
                                                          .timeout_seconds = command.timeout,
                                                          .attached = !command.detach}));
  MUSTER_ASSIGN_OR_RETURN(jobs::NotebookSession session,
                          jobs::NotebookSession::Start(context.program(), subject.folder,
                                                       prepared.launch, prepared.env));
  const std::string how_to_end =
      command.detach ? absl::StrCat("`", CommandFor(command, subject), " --stop` ends it.")
                     : "Ctrl-C ends it.";
  return Follower(context, command, subject, std::move(session))
      .Run(held, [&](const std::string& url) {
        PrintLink(context.out(), subject, url);
        context.out().PrintLine(password.notice);
        context.out().PrintLine(how_to_end);
        lock.reset();
      });
}

absl::StatusOr<int> Notebook(Context& context, NotebookCommand& command) {
  if (command.port > kMaxPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("--port ", command.port, ": the highest port is ", kMaxPort));
  }
  MUSTER_ASSIGN_OR_RETURN(const Where where, Locate(context, command));
  if (where.cluster.has_value()) return ShowClusterNotebook(context, *where.cluster);
  if (!command.stop) {
    auto code = StartHere(context, command, *where.here);
    if (absl::IsCancelled(code.status())) return kInterrupted;
    return code;
  }
  MUSTER_RETURN_IF_ERROR(base::Annotate(jobs::StopNotebook(where.here->folder), where.here->job));
  context.out().PrintLine(absl::StrCat("Stopped the notebook of ", where.here->job, "."));
  return kSuccess;
}

// The background process of a notebook.
void AddServerCommand(Command& program) {
  Command& command = program.AddCommand("serve-notebook", "Run the Jupyter of a notebook");
  command.Hide();
  auto folder = std::make_shared<std::string>();
  command.Argument("FOLDER", folder.get(), "", Presence::kRequired);
  command.OnCall(
      [folder]() -> absl::StatusOr<int> { return jobs::ServeNotebook(*folder, STDIN_FILENO); });
}

}  // namespace

void AddNotebookCommand(Command& program, Context& context) {
  Command& command = program.AddCommand(
      "notebook", "Start Jupyter for a job, or print how to reach that of a job in a cluster");
  auto options = std::make_shared<NotebookCommand>();
  command.Argument("JOB", &options->job,
                   "A job, or a job file (default: the newest running job, else the newest)");
  command.Flag("-d,--detach", &options->detach, "Keep Jupyter running in the background");
  command.Flag("--stop", &options->stop, "Stop the notebook");
  command.Option("--port", &options->port, "The port of this machine (default: a free one)");
  command.Option("--password-file", &options->password_file,
                 "A file that contains the password. Without it: MUSTER_NOTEBOOK_PASSWORD, "
                 "the job file, the last one, asked for, or generated");
  command.Flag("--new-password", &options->new_password,
               "Ask for a new password, or generate one if there is no terminal");
  command.Option("--jupyter", &options->jupyter,
                 "The program (default: jupyter-lab, jupyter-notebook or jupyter-server in PATH)");
  command.Option("--timeout", &options->timeout, "Seconds to wait until Jupyter answers");
  for (const char* other : {"--detach", "--port", "--password-file", "--new-password"}) {
    command.Exclude("--stop", other);
  }
  options->target.AddTo(command, context, platform::OptionUse::kFind);
  command.OnCall([&context, options] { return Notebook(context, *options); });
  AddServerCommand(program);
}

}  // namespace muster::cli
