#include "launch/supervise.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/files.h"
#include "base/unique_fd.h"
#include "launch/guard.h"
#include "launch/local/runner.h"
#include "launch/ssh/place.h"
#include "launch/ssh/runner.h"
#include "launch/supervisor.h"

namespace muster {
namespace {

void Report(UniqueFd& fd, const std::string& text) {
  if (!fd.valid()) return;
  (void)WriteAll(fd.get(), text);
  fd.Reset();
}

absl::StatusOr<std::unique_ptr<Runner>> MakeRunner(const JobDir& dir, const Submission& submission,
                                                   EventLoop& loop, RunnerEvents& events) {
  if (ssh::JobPlace::Is(submission.place)) {
    return ssh::SshRunner::Create(dir, submission, loop, events);
  }
  return std::make_unique<local::LocalRunner>(dir, submission.id, loop, events);
}

int RunSupervisor(const std::string& job_dir, UniqueFd report,
                  const std::function<absl::StatusOr<std::unique_ptr<EventSink>>()>& open_sink) {
  auto sink = open_sink();
  if (!sink.ok()) {
    Report(report, std::string(sink.status().message()));
    return 1;
  }
  auto supervisor = Supervisor::Create(JobDir(job_dir), **sink, MakeRunner);
  if (!supervisor.ok()) {
    Report(report, std::string(supervisor.status().message()));
    return 1;
  }
  Report(report, "ok\n");
  const absl::Status status = (*supervisor)->Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "supervisor: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int Supervise(const std::string& job_dir, int report_fd,
              const std::function<absl::StatusOr<std::unique_ptr<EventSink>>()>& open_sink) {
  // The report's descriptor is standard input; nothing below may read it or keep it open.
  UniqueFd report(::fcntl(report_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), report_fd);

  const int code = RunGuarded([&] { return RunSupervisor(job_dir, std::move(report), open_sink); },
                              [&] { report.Reset(); });
  if (code < 0) Report(report, "cannot fork: this machine is out of processes or memory");
  return code < 0 ? 1 : code;
}

}  // namespace muster
