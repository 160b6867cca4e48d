#include "platform/local/preflight.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "job/format/field_marks.h"
#include "platform/local/addresses.h"
#include "platform/local/launch.h"
#include "platform/local/shell_line.h"
#include "process/spawn.h"
#include "storage/url.h"
#include "supervise/ports.h"

namespace muster::local {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Returns whether `path` exists, or matches a file as a glob pattern.
bool Matches(const std::string& path) {
  if (Exists(path)) return true;
  glob_t found{};
  const bool any = ::glob(path.c_str(), GLOB_NOSORT, nullptr, &found) == 0;
  ::globfree(&found);
  return any;
}

// A program that runs a script, and its single-letter options that take no value and do not replace
// the script. "python" also matches python3 and python3.11.
struct Interpreter {
  absl::string_view name;
  absl::string_view flags = "";
};
constexpr Interpreter kInterpreters[] = {{"python", "bBdEiIOPqSuvx"},
                                         {"bash", "euvx"},
                                         {"dash", "euvx"},
                                         {"sh", "euvx"},
                                         {"zsh", "euvx"},
                                         {"julia"},
                                         {"node"},
                                         {"perl"},
                                         {"php"},
                                         {"ruby"},
                                         {"Rscript"}};

const Interpreter* FindInterpreter(absl::string_view program) {
  const absl::string_view name = program.substr(program.rfind('/') + 1);
  for (const Interpreter& one : kInterpreters) {
    if (name == one.name) return &one;
    if (one.name == "python" && absl::StartsWith(name, one.name) &&
        name.find_first_not_of("0123456789.", one.name.size()) == absl::string_view::npos) {
      return &one;
    }
  }
  return nullptr;
}

class JobChecks {
 public:
  JobChecks(supervise::JobDir dir, const job::Submission& submission)
      : submission_(submission), spec_(submission.spec), marks_(submission), dir_(std::move(dir)) {}

  absl::StatusOr<std::vector<platform::Finding>> Run() {
    const cluster::ClusterSpec cluster = PlanAddresses(spec_, {});
    for (const job::RoleSpec& role : spec_.roles) {
      if (role.replicas == 0) continue;
      MUSTER_ASSIGN_OR_RETURN(const job::TaskLaunch launch,
                              LaunchOf(dir_, submission_, cluster, {role.name, 0}, 0, 0));
      CheckRole(role, launch);
    }
    CheckModel();
    CheckData();
    CheckGpus();
    return std::move(findings_);
  }

 private:
  void Ok(std::string subject, std::string detail) {
    findings_.push_back({platform::Grade::kOk, std::move(subject), std::move(detail)});
  }

  void CheckRole(const job::RoleSpec& role, const job::TaskLaunch& launch) {
    const std::string directory = absl::StrCat("directory of ", role.name);
    std::error_code error;
    if (!std::filesystem::is_directory(launch.working_dir, error)) {
      findings_.push_back({platform::Grade::kMissing, directory,
                           absl::StrCat(launch.working_dir,
                                        " is not a directory; create it, or "
                                        "correct `working_dir`"),
                           /*fatal=*/true, marks_.OfRole(role.name, "working_dir")});
      return;  // the program cannot be resolved without it
    }
    Ok(directory, launch.working_dir);
    CheckProgram(role, launch);
  }

  void CheckProgram(const job::RoleSpec& role, const job::TaskLaunch& launch) {
    if (launch.argv.empty()) return;  // an entry point of an image; Unsupported() reports it
    auto env = process::CurrentEnvironment();
    for (const auto& [name, value] : launch.env) env[name] = value;
    ShellCommand command{.words = launch.argv, .decides = true};
    auto program = process::FindProgram(launch.argv[0], env, launch.working_dir);
    const bool is_line =
        launch.argv.size() == 3 && launch.argv[0] == "/bin/sh" && launch.argv[1] == "-c";
    if (program.ok() && is_line) {
      command = FirstCommand(launch.argv[2]);
      if (!command.words.empty())
        program = process::FindProgram(command.words[0], env, launch.working_dir);
    }
    const std::string subject = absl::StrCat("program of ", role.name);
    if (program.ok()) {
      Ok(subject, *program);
      // The program of a server is written when the job starts.
      if (!role.command.empty()) CheckScript(role, launch, command);
      return;
    }
    // Not fatal if the built-in trainer is missing: SubmitJob() returns a better message.
    findings_.push_back(
        {platform::Grade::kMissing, subject, std::string(program.status().message()),
         command.decides && !(role.command.empty() && role.server != job::Server::kTensorFlow),
         marks_.OfRole(role.name, "command")});
  }

  void CheckScript(const job::RoleSpec& role, const job::TaskLaunch& launch,
                   const ShellCommand& command) {
    const std::string script = ScriptOf(command.words);
    if (script.empty()) return;
    const std::string subject = absl::StrCat("script of ", role.name);
    const std::string path = base::AbsolutePath(script, launch.working_dir);
    if (Exists(path)) return Ok(subject, path);
    // Not fatal for a task that is restarted on failure: the script may appear in the meantime.
    const bool once =
        role.restart == job::RestartPolicy::kNever || role.restart == job::RestartPolicy::kExitCode;
    findings_.push_back({platform::Grade::kMissing, subject,
                         absl::StrCat(path, " does not exist; correct `command` or `working_dir`"),
                         command.decides && once, marks_.OfRole(role.name, "command")});
  }

  // Returns whether all roles run the built-in trainer, which does not create its own input. A role
  // with a command might.
  bool OnlyTrains() const {
    return std::all_of(spec_.roles.begin(), spec_.roles.end(),
                       [](const job::RoleSpec& role) { return role.command.empty(); });
  }

  void AddInput(const std::string& subject, const std::string& path, const std::string& advice,
                codec::Mark mark) {
    if (path.empty() || storage::IsRemote(path)) return;
    if (Matches(path)) return Ok(subject, path);
    const bool fatal = OnlyTrains();
    findings_.push_back({fatal ? platform::Grade::kMissing : platform::Grade::kWarning, subject,
                         absl::StrCat(path, " does not exist; ", advice), fatal, mark});
  }

  void CheckModel() {
    if (!spec_.train.is_object()) return;
    const std::string model = spec_.train.value("model", "");
    if (!absl::StrContains(model, '/')) return;  // a built-in model
    AddInput("model", model, "save it there with torch.jit.save, or correct `model`",
             marks_.Of({"train", "model"}));
  }

  void CheckData() {
    if (!spec_.train.is_object()) return;
    const auto data = spec_.train.value("data", nlohmann::json::object());
    const auto path = data.find("path");
    if (path == data.end()) return;
    const auto advice = [&](const std::string& where) {
      return data.value("format", "") == "mnist"
                 ? absl::StrCat("`muster data fetch mnist --to ", where, "` downloads it")
                 : std::string("put the data there, or correct `path`");
    };
    if (path->is_string()) {
      const std::string one = path->get<std::string>();
      AddInput("data", one, advice(one), marks_.Of({"train", "data", "path"}));
      return;
    }
    if (!path->is_object()) return;
    for (const auto& [split, value] : path->items()) {
      const std::string one = value.get<std::string>();
      AddInput(absl::StrCat("data for ", split), one, advice(one),
               marks_.Of({"train", "data", "path", split}));
    }
  }

  void CheckGpus() {
    int asked = 0;
    std::string first;
    for (const job::RoleSpec& role : spec_.roles) {
      const int of_role = role.resources.gpus.value_or(0) * role.replicas;
      if (of_role > 0 && first.empty()) first = role.name;
      asked += of_role;
    }
    const auto here = CountGpus("/");
    if (asked == 0 || !here) return;
    const std::string detail =
        absl::StrCat("this machine has ", base::Plural(*here, "GPU"), ", the job requests ", asked);
    if (asked <= *here) return Ok("gpus", detail);
    // Not fatal for a manifest: it describes pods, and users try it locally without GPUs.
    findings_.push_back({platform::Grade::kMissing, "gpus",
                         absl::StrCat(detail,
                                      "; run it on a machine that has them, or request fewer "
                                      "(a second file, passed with -c, can override `resources`)"),
                         spec_.format == job::JobFormat::kNative,
                         marks_.OfRole(first, "resources")});
  }

  const job::Submission& submission_;
  const job::JobSpec& spec_;
  const job::FieldMarks marks_;
  const supervise::JobDir dir_;
  std::vector<platform::Finding> findings_;
};

}  // namespace

std::string ScriptOf(const std::vector<std::string>& words) {
  const Interpreter* interpreter = words.empty() ? nullptr : FindInterpreter(words[0]);
  if (interpreter == nullptr) return "";
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty() || word == "-") return "";
    if (word[0] != '-') return word;
    // An unknown option may take a value, or run code or a module instead of a script.
    if (absl::string_view(word).find_first_not_of(interpreter->flags, 1) != word.npos) return "";
  }
  return "";
}

std::optional<int> CountGpus(const std::string& root) {
  std::error_code error;
  int count = 0;
  const auto count_in = [&](const std::string& folder, auto is_gpu) {
    for (const auto& entry :
         std::filesystem::directory_iterator(base::JoinPath(root, folder), error)) {
      if (is_gpu(entry.path())) ++count;
    }
  };
  // NVIDIA has a device file per GPU. AMD has a topology node per GPU and per CPU; CPUs have id 0.
  count_in("dev", [](const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return absl::StartsWith(name, "nvidia") && name.size() > 6 &&
           name.find_first_not_of("0123456789", 6) == std::string::npos;
  });
  count_in("sys/class/kfd/kfd/topology/nodes", [](const std::filesystem::path& path) {
    const auto id = base::ReadFile((path / "gpu_id").string(), 64);
    return id.ok() && absl::StripAsciiWhitespace(*id) != "0";
  });
  // WSL exposes all GPUs as /dev/dxg, so they cannot be counted.
  if (count == 0 && Exists(base::JoinPath(root, "dev/dxg"))) return std::nullopt;
  return count;
}

absl::StatusOr<std::vector<platform::Finding>> CheckJob(const supervise::JobDir& dir,
                                                        const job::Submission& submission,
                                                        bool thorough) {
  MUSTER_ASSIGN_OR_RETURN(auto findings, JobChecks(dir, submission).Run());
  if (!thorough) return findings;
  supervise::PortReservations ports;
  const auto assigned = AssignAddresses(submission.spec, {}, ports);
  findings.push_back({assigned.ok() ? platform::Grade::kOk : platform::Grade::kMissing, "ports",
                      assigned.ok() ? "free" : std::string(assigned.status().message())});
  return findings;
}

}  // namespace muster::local
