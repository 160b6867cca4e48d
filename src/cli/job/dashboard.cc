// muster dashboard: shows jobs in a browser.
#include "cli/job/dashboard.h"

#include <signal.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "jobs/find/lookup.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

constexpr size_t kMinPassword = 8;

struct DashboardCommand {
  std::string job;
  std::string listen = "127.0.0.1";
  int port = 0;
  std::vector<std::string> names;
  std::string certificate, key, password_file;
  bool metrics = false;
};

absl::StatusOr<std::string> ReadPassword(const std::string& path) {
  if (path.empty()) return "";
  MUSTER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, 4096));
  const std::string password(absl::StripTrailingAsciiWhitespace(text));
  if (password.size() >= kMinPassword) return password;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has a password of fewer than ", kMinPassword, " characters"));
}

absl::StatusOr<int> ServeDashboard(Context& context, const DashboardCommand& command) {
  std::string job;
  if (!command.job.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const job::JobRecord record,
                            jobs::FindJob(context.jobs(), command.job));
    job = record.id;
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string password, ReadPassword(command.password_file));
  const process::HeldSignals held;  // before the server starts its threads
  MUSTER_ASSIGN_OR_RETURN(const auto dashboard, StartDashboard(context,
                                                               {.host = command.listen,
                                                                .port = command.port,
                                                                .names = command.names,
                                                                .certificate = command.certificate,
                                                                .key = command.key,
                                                                .password = password,
                                                                .metrics = command.metrics},
                                                               job));
  context.err().Note("Ctrl-C ends the dashboard; jobs go on");
  int signal = 0;
  ::sigwait(&held.set(), &signal);
  return kSuccess;
}

}  // namespace

absl::StatusOr<std::unique_ptr<dashboard::Dashboard>> StartDashboard(
    Context& context, dashboard::DashboardOptions options, const std::string& job) {
  options.version = MUSTER_VERSION;
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<dashboard::Dashboard> dashboard,
      dashboard::Dashboard::Start(options, [&context] { return context.NewService(); }));
  context.out().PrintLine(dashboard->NewLink(job));
  context.out().Flush();
  dashboard->OnLinkUsed([&context, served = dashboard.get()] {
    context.Notify(absl::StrCat("the link was used; for another browser: ", served->NewLink()));
  });
  return dashboard;
}

void AddDashboardCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("dashboard", "Show jobs live in a browser");
  auto options = std::make_shared<DashboardCommand>();
  command.Argument("JOB", &options->job, "The job that the link opens (default: the list of jobs)");
  command.Option("--port", &options->port, "The port to listen on (default: any free one)");
  command.Option("--listen", &options->listen,
                 "The address to listen on; one that other machines reach requires TLS and a "
                 "password");
  command.Option("--name", &options->names,
                 "A further host name under which browsers reach it; may be repeated");
  command.Option("--tls-cert", &options->certificate, "The certificate, a PEM file");
  command.Option("--tls-key", &options->key, "Its private key, a PEM file");
  command.Option("--password-file", &options->password_file,
                 "A file with the password that browsers may log in with");
  command.Flag("--metrics", &options->metrics, "Serve /metrics for Prometheus");
  command.OnCall([&context, options] { return ServeDashboard(context, *options); });
}

}  // namespace muster::cli
