#include "launch/ssh/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/terminal_text.h"

namespace muster::ssh {
namespace {

// For the sockets of shared connections, whose names must be short; "" when there is no safe place.
std::string SharedFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && runtime[0] == '/'
                                 ? absl::StrCat(runtime, "/muster-ssh")
                                 : absl::StrCat("/tmp/muster-ssh-", ::getuid());
  ::mkdir(folder.c_str(), 0700);
  struct stat info {};
  const bool is_mine = ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                       info.st_uid == ::getuid() && (info.st_mode & 077) == 0;
  return is_mine ? folder : "";
}

// The last thing that ssh said which is not a mere warning.
std::string LastWords(absl::string_view said) {
  std::string words;
  for (const absl::string_view line : absl::StrSplit(said, '\n', absl::SkipWhitespace())) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (!absl::StartsWith(text, "Warning:")) words = Printable(text);
  }
  return words;
}

}  // namespace

std::vector<std::string> SshArgv(const HostSpec& host, const std::string& command,
                                 Sharing sharing) {
  const char* set = std::getenv("MUSTER_SSH");
  const std::string program = set == nullptr ? "ssh" : set;
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
    // Another configuration may mean another machine by the same name.
    const std::string path = absl::StrCat(folder, "/", absl::Hex(Crc32c(program)), "-%C");
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

std::string ForAnyShell(absl::string_view script) {
  return absl::StrCat("exec sh -c '", absl::StrReplaceAll(script, {{"'", "'\\''"}}), "'");
}

absl::Status ExplainSsh(const HostSpec& host, int exit_code, absl::string_view said) {
  const std::string words = LastWords(said);
  const std::string at = absl::StrCat(host.name, ": ");
  const auto says = [&](absl::string_view text) { return absl::StrContains(said, text); };
  if (says("REMOTE HOST IDENTIFICATION HAS CHANGED")) {
    return absl::FailedPreconditionError(absl::StrCat(
        at,
        "its host key is not the one that you know it by; when the machine was set up anew, "
        "`ssh-keygen -R ",
        host.address, "` forgets the old key, else somebody may listen"));
  }
  if (says("Host key verification failed")) {
    return absl::FailedPreconditionError(absl::StrCat(at, "its host key is not known yet: `ssh ",
                                                      host.address,
                                                      "` once by hand, and compare the key"));
  }
  if (says("Permission denied")) {
    return absl::PermissionDeniedError(
        absl::StrCat(at, "it does not let you in (", words, "); `ssh ", host.address,
                     "` must work without a password: see ssh-copy-id and ssh-agent"));
  }
  if (says("Could not resolve hostname")) {
    return absl::NotFoundError(absl::StrCat(at, words, "; is the name right?"));
  }
  // 255 is ssh's own; anything else comes from the command.
  if (exit_code == 255) {
    return absl::UnavailableError(absl::StrCat(
        at, words.empty() ? "the connection was lost" : words, "; is it up, and does sshd run?"));
  }
  return absl::UnknownError(
      absl::StrCat(at, words.empty() ? absl::StrCat("exit code ", exit_code) : words));
}

}  // namespace muster::ssh
