#include "supervise/main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "supervise/guard.h"
#include "supervise/supervisor.h"

namespace muster::supervise {
namespace {

void Report(base::UniqueFd& fd, const std::string& text) {
  if (!fd.valid()) return;
  (void)base::WriteAll(fd.get(), text);
  fd.Reset();
}

int RunSupervisor(const std::string& job_dir, base::UniqueFd report, const SinkFactory& open_sink,
                  const RunnerFactory& make_runner) {
  auto sink = open_sink();
  if (!sink.ok()) {
    Report(report, std::string(sink.status().message()));
    return 1;
  }
  auto supervisor = Supervisor::Create(JobDir(job_dir), **sink, make_runner);
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

int Supervise(const std::string& job_dir, int report_fd, const SinkFactory& open_sink,
              const RunnerFactory& make_runner) {
  // `report_fd` is standard input. No process below may read it or keep it open.
  base::UniqueFd report(::fcntl(report_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), report_fd);

  const int code =
      RunGuarded([&] { return RunSupervisor(job_dir, std::move(report), open_sink, make_runner); },
                 [&] { report.Reset(); });
  if (code < 0) Report(report, "cannot fork: this machine is out of processes or memory");
  return code < 0 ? 1 : code;
}

}  // namespace muster::supervise
