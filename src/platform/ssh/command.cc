#include "platform/ssh/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/bytes/crc32c.h"
#include "base/text/terminal_text.h"
#include "process/spawn.h"

namespace muster::ssh {
namespace {

// A socket path has at most 107 bytes. The folder is followed by "/", 8 digits, "-", 40 digits and
// 17 bytes that ssh appends while it creates the socket.
constexpr size_t kMaxSharedFolderLength = 107 - 1 - 8 - 1 - 40 - 17;

// Returns the folder for the sockets of shared connections, or "" if there is no safe one.
std::string SharedFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::string folder = absl::StrCat(runtime == nullptr ? "" : runtime, "/muster-ssh");
  if (runtime == nullptr || runtime[0] != '/' || folder.size() > kMaxSharedFolderLength) {
    folder = absl::StrCat("/tmp/muster-ssh-", ::getuid());
  }
  ::mkdir(folder.c_str(), 0700);
  struct stat info {};
  const bool is_mine = ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                       info.st_uid == ::getuid() && (info.st_mode & 077) == 0;
  return is_mine ? folder : "";
}

// Returns the last line of ssh's output that contains `part` and is not a warning.
std::string LastLineWith(absl::string_view error_output, absl::string_view part = "") {
  std::string words;
  for (const absl::string_view line : absl::StrSplit(error_output, '\n', absl::SkipWhitespace())) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (absl::StrContains(text, part) && !absl::StartsWith(text, "Warning:")) {
      words = base::Printable(text);
    }
  }
  return words;
}

std::string Program() {
  const char* set = std::getenv("MUSTER_SSH");
  return set == nullptr ? "ssh" : set;
}

// Returns the command by which the user connects to the host.
std::string ManualCommand(const job::HostSpec& host) {
  std::string command = Program();
  if (host.port != 0) absl::StrAppend(&command, " -p ", host.port);
  if (!host.key.empty()) absl::StrAppend(&command, " -i ", host.key);
  const std::string user = host.user.empty() ? "" : absl::StrCat(host.user, "@");
  return absl::StrCat("`", command, " ", user, host.address, "`");
}

// Returns the command that removes the known key of the host. Its name in known_hosts is taken from
// the output of ssh, because the configuration may map the address.
std::string RemoveKeyCommand(const job::HostSpec& host, absl::string_view error_output) {
  std::string name = host.port == 0 || host.port == 22
                         ? host.address
                         : absl::StrCat("[", host.address, "]:", host.port);
  const std::string line =
      LastLineWith(error_output, " has changed and you have requested strict checking");
  if (absl::string_view rest = line; absl::ConsumePrefix(&rest, "Host key for ")) {
    name = std::string(rest.substr(0, rest.find(" has changed")));
  }
  const std::string where = LastLineWith(error_output, "Offending ");
  const size_t begin = where.find(" key in ");
  const size_t end = where.rfind(':');
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return absl::StrCat("`ssh-keygen -R ", base::ShellQuote(name), "`");
  }
  const size_t path = begin + absl::string_view(" key in ").size();
  return absl::StrCat("`ssh-keygen -f ", base::ShellQuote(where.substr(path, end - path)), " -R ",
                      base::ShellQuote(name), "`");
}

}  // namespace

std::vector<std::string> SshArgv(const job::HostSpec& host, const std::string& command,
                                 Sharing sharing) {
  const std::string program = Program();
  std::vector<std::string> argv = absl::StrSplit(program, ' ', absl::SkipEmpty());
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3",
        "ForwardX11=no", "ForwardAgent=no", "ClearAllForwardings=yes"}) {
    argv.insert(argv.end(), {"-o", option});
  }
  const std::string folder = sharing == Sharing::kShared ? SharedFolder() : "";
  if (folder.empty()) {
    argv.insert(argv.end(), {"-o", "ControlMaster=no", "-o", "ControlPath=none"});
  } else {
    // The program is part of the name: another configuration may give the same name to another
    // host.
    const std::string path = absl::StrCat(folder, "/", absl::Hex(base::Crc32c(program)), "-%C");
    argv.insert(argv.end(), {"-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o",
                             absl::StrCat("ControlPath=", path)});
  }
  if (!host.user.empty()) argv.insert(argv.end(), {"-l", host.user});
  if (host.port != 0) argv.insert(argv.end(), {"-p", absl::StrCat(host.port)});
  if (!host.key.empty()) {
    argv.insert(argv.end(), {"-i", host.key, "-o", "IdentitiesOnly=yes"});
  }
  argv.insert(argv.end(), {"-T", "--", host.address, command});
  return argv;
}

std::map<std::string, std::string> SshEnvironment() {
  std::map<std::string, std::string> environment = process::CurrentEnvironment();
  environment["SSH_ASKPASS"] = "/bin/false";
  environment["SSH_ASKPASS_REQUIRE"] = "force";
  return environment;
}

std::string ForAnyShell(absl::string_view script) {
  return absl::StrCat("exec sh -c '", absl::StrReplaceAll(script, {{"'", "'\\''"}}), "'");
}

absl::Status ExplainSsh(const job::HostSpec& host, int exit_code, absl::string_view error_output) {
  const std::string words = LastLineWith(error_output);
  const std::string at = absl::StrCat(host.name, ": ");
  // ssh itself exits with 255; other codes are those of the remote command.
  if (exit_code != 255) {
    return absl::UnknownError(
        absl::StrCat(at, words.empty() ? absl::StrCat("exit code ", exit_code) : words));
  }
  const auto says = [&](absl::string_view text) { return absl::StrContains(error_output, text); };
  if (says("REMOTE HOST IDENTIFICATION HAS CHANGED")) {
    return absl::FailedPreconditionError(absl::StrCat(
        at, "its host key has changed; if the machine was reinstalled, remove the old key with ",
        RemoveKeyCommand(host, error_output), "; otherwise the connection may be intercepted"));
  }
  if (says("Host key verification failed")) {
    return absl::FailedPreconditionError(absl::StrCat(
        at, "its host key is unknown: run ", ManualCommand(host), " once and verify the key"));
  }
  if (says("Permission denied")) {
    return absl::PermissionDeniedError(absl::StrCat(
        at, "login refused (", LastLineWith(error_output, "Permission denied"), "); ",
        ManualCommand(host), " must work without a password: see ssh-copy-id and ssh-agent"));
  }
  if (says("Could not resolve hostname")) {
    return absl::NotFoundError(absl::StrCat(at, words, "; check the name"));
  }
  return absl::UnavailableError(absl::StrCat(at, words.empty() ? "the connection was lost" : words,
                                             "; check that it is up and runs sshd"));
}

}  // namespace muster::ssh
