#include "platform/images.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/files/temporary_folder.h"
#include "base/status_macros.h"
#include "platform/image_scripts.h"
#include "process/run.h"

namespace muster::platform {
namespace {

constexpr absl::Duration kLookTimeout = absl::Minutes(1);
constexpr absl::Duration kMakeTimeout = absl::Minutes(10);
constexpr absl::Duration kPushTimeout = absl::Hours(3);
constexpr size_t kMaxOutput = 64 << 10;
constexpr char kLocalRegistries[] = "registries.conf";

// Returns the name of the layout's folder, which is also the name of the image in buildah's
// storage, so it differs between processes.
std::string LayoutName() { return absl::StrCat("muster-layout-", ::getpid()); }

absl::string_view HostOf(const Image& image) {
  const absl::string_view repository = image.repository;
  return repository.substr(0, repository.find('/'));
}

// Returns true if the registry is on this machine, where neither encryption nor a certificate is
// needed.
bool IsLocal(const Image& image) {
  const absl::string_view host = HostOf(image);
  const absl::string_view name = host.substr(0, host.rfind(':'));
  return name == "localhost" || absl::StartsWith(name, "127.");
}

// Ignores case. REQUIRES: `parts` are in lower case.
bool ContainsAny(absl::string_view text, std::initializer_list<absl::string_view> parts) {
  const std::string lower = absl::AsciiStrToLower(text);
  return std::any_of(parts.begin(), parts.end(),
                     [&lower](absl::string_view part) { return absl::StrContains(lower, part); });
}

bool IsUnreachable(absl::string_view output) {
  return ContainsAny(output, {"connection refused", "no such host", "i/o timeout", "no route to",
                              "deadline exceeded", "network is unreachable"});
}

bool IsUntrusted(absl::string_view output) {
  return ContainsAny(output, {"x509", "http response to https client"});
}

// Returns the last line of a tool's output without its decoration: `time="…" level=fatal msg="…"`.
std::string Complaint(absl::string_view output) {
  const std::vector<absl::string_view> lines = absl::StrSplit(output, '\n', absl::SkipWhitespace());
  if (lines.empty()) return "it printed nothing";
  absl::string_view line = lines.back();
  if (const size_t message = line.find("msg=\""); message != absl::string_view::npos) {
    line = absl::StripSuffix(line.substr(message + 5), "\"");
  }
  absl::ConsumePrefix(&line, "Error: ");
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(line), {{"\\\"", "\""}});
}

// skopeo or buildah. Methods block and are cancelled by `options.cancelled`.
class Tool {
 public:
  // Returns FailedPrecondition, with the commands that push `image` elsewhere, if neither is
  // installed. `folder` and `options` must outlive this.
  static absl::StatusOr<Tool> Find(const Image& image, const base::TemporaryFolder& folder,
                                   const PushOptions& options) {
    for (const char* name : {"skopeo", "buildah"}) {
      const auto path = process::FindProgram(name, process::CurrentEnvironment(), "");
      if (path.ok()) return Tool(name, *path, folder, options);
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot push ", image.Reference(),
        ": neither skopeo nor buildah is in PATH; install one of them (apt-get install skopeo), or "
        "run these commands in Muster's source, on a machine with buildah, and pass the image "
        "instead of the repository:\n  scripts/images ",
        image.name, "\n  buildah push localhost/", image.name, ":", image.version, " docker://",
        image.Reference()));
  }

  // A registry may hide the absence of an image behind a refusal, so all other errors mean absent:
  // pushing then fails with the reason.
  absl::StatusOr<bool> Has(const Image& image) const {
    const std::string url = absl::StrCat("docker://", image.Reference());
    const auto look =
        Call(image,
             is_skopeo() ? std::vector<std::string>{"inspect", "--raw", url}
                         : std::vector<std::string>{"manifest", "inspect", image.Reference()},
             kLookTimeout);
    MUSTER_RETURN_IF_ERROR(look.status());
    // buildah's command is for lists of images, and older versions reject others after they have
    // read them.
    if (look->exit.ok() || absl::StrContains(look->output, "not a list type")) return true;
    if (IsUnreachable(look->output) || IsUntrusted(look->output)) {
      return Failure("reach the registry of", image, look->output);
    }
    return false;
  }

  // Pushes the image in the layout of the folder.
  absl::Status Push(const Image& image) const {
    const std::string source = absl::StrCat("oci:", LayoutName());
    const std::string url = absl::StrCat("docker://", image.Reference());
    if (is_skopeo()) {
      return CallOrFail("push", image, {"copy", "--quiet", source, url}, kPushTimeout);
    }
    // buildah pushes only from its own storage.
    MUSTER_RETURN_IF_ERROR(CallOrFail("import", image, {"pull", "--quiet", source}, kMakeTimeout));
    const absl::Status pushed =
        CallOrFail("push", image, {"push", "--quiet", LayoutName(), url}, kPushTimeout);
    process::Run(CommandOf({path_, "rmi", LayoutName()}), kLookTimeout).IgnoreError();
    return pushed;
  }

 private:
  Tool(std::string name, std::string path, const base::TemporaryFolder& folder,
       const PushOptions& options)
      : name_(std::move(name)), path_(std::move(path)), folder_(folder), options_(options) {}

  bool is_skopeo() const { return name_ == "skopeo"; }

  process::SpawnOptions CommandOf(std::vector<std::string> argv) const {
    return {.argv = std::move(argv),
            .env = process::CurrentEnvironment(),
            .working_dir = folder_.path(),
            .parent_death_signal = SIGTERM};
  }

  absl::StatusOr<process::RunResult> Call(const Image& image, const std::vector<std::string>& args,
                                          absl::Duration timeout) const {
    std::vector<std::string> argv = {path_};
    if (IsLocal(image)) {
      MUSTER_RETURN_IF_ERROR(base::ReplaceFile(
          folder_.File(kLocalRegistries),
          absl::StrCat("[[registry]]\nlocation = \"", HostOf(image), "\"\ninsecure = true\n")));
      argv.insert(argv.end(), {"--registries-conf", folder_.File(kLocalRegistries)});
    }
    argv.insert(argv.end(), args.begin(), args.end());
    return process::Run(CommandOf(std::move(argv)), timeout, kMaxOutput, options_.cancelled);
  }

  absl::Status CallOrFail(absl::string_view verb, const Image& image,
                          const std::vector<std::string>& args, absl::Duration timeout) const {
    MUSTER_ASSIGN_OR_RETURN(const process::RunResult result, Call(image, args, timeout));
    return result.exit.ok() ? absl::OkStatus() : Failure(verb, image, result.output);
  }

  absl::Status Failure(absl::string_view verb, const Image& image, absl::string_view output) const {
    const std::string remedy = RemedyFor(image, name_, output);
    return absl::UnavailableError(absl::StrCat("cannot ", verb, " ", image.Reference(), ": ", name_,
                                               ": ", Complaint(output), remedy.empty() ? "" : "; ",
                                               remedy));
  }

  std::string name_;
  std::string path_;
  const base::TemporaryFolder& folder_;
  const PushOptions& options_;
};

// Makes the image, as a layout in the folder.
absl::Status MakeLayout(const Image& image, const base::TemporaryFolder& folder,
                        const PushOptions& options) {
  std::vector<std::string> argv = {"bash", folder.File("layout"), LayoutName()};
  for (const std::string& name : image.programs) {
    auto path = options.find_program(name);
    if (!path.ok()) {
      return base::Annotate(path.status(), absl::StrCat("cannot make ", image.Reference()));
    }
    argv.push_back(*std::move(path));
  }
  for (const base::EmbeddedFile& script : kImageScripts) {
    MUSTER_RETURN_IF_ERROR(base::ReplaceFile(folder.File(script.name), script.text));
  }
  MUSTER_ASSIGN_OR_RETURN(const process::RunResult made,
                          process::Run({.argv = std::move(argv),
                                        .env = process::CurrentEnvironment(),
                                        .working_dir = folder.path(),
                                        .parent_death_signal = SIGTERM},
                                       kMakeTimeout, kMaxOutput, options.cancelled));
  if (made.exit.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot make ", image.Reference(), ": ", Complaint(made.output)));
}

bool IsPathComponent(absl::string_view text) {
  const auto is_alnum = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  return !text.empty() && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; });
}

// A name without a dot or a port is not a host to the tools that push: they would look for it in
// their default registry.
bool IsHost(absl::string_view text) {
  const auto is_alnum = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  if (text.empty() || !is_alnum(text.front()) || !is_alnum(text.back())) return false;
  if (text != "localhost" && text.find_first_of(".:") == absl::string_view::npos) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == ':';
  });
}

}  // namespace

std::string Image::Reference() const { return absl::StrCat(repository, "/", name, ":", version); }

Image OperatorImage(const std::string& repository, const std::string& version) {
  return {repository, "muster", version, {"muster"}};
}

Image TrainerImage(const std::string& repository, const std::string& version) {
  return {repository, "muster-trainer", version, {"muster-trainer"}};
}

bool Mentions(const nlohmann::json& document, const Image& image) {
  if (document.is_string()) return document == image.Reference();
  return std::any_of(document.begin(), document.end(), [&image](const nlohmann::json& item) {
    return item.is_structured() || item.is_string() ? Mentions(item, image) : false;
  });
}

absl::Status ExcludesRepository(absl::string_view option) {
  return absl::InvalidArgumentError(
      absl::StrCat(option, " and --image-repository exclude each other: the image is either yours ",
                   "or one that Muster pushes"));
}

absl::Status CheckRepository(absl::string_view repository) {
  const std::vector<absl::string_view> parts = absl::StrSplit(repository, '/');
  if (IsHost(parts.front()) && std::all_of(parts.begin() + 1, parts.end(), IsPathComponent)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--image-repository ", repository,
      ": must be a registry and a path of lower-case letters, without a scheme and a tag, such as "
      "registry.example.com/ml or docker.io/USER"));
}

std::string RemedyFor(const Image& image, absl::string_view tool, absl::string_view output) {
  const absl::string_view host = HostOf(image);
  const bool is_google = absl::EndsWith(host, "-docker.pkg.dev") || host == "gcr.io" ||
                         absl::EndsWith(host, ".gcr.io");
  if (IsUnreachable(output)) return absl::StrCat("check that ", host, " is reachable from here");
  if (IsUntrusted(output)) {
    return absl::StrCat("put the registry's certificate authority into /etc/containers/certs.d/",
                        host, "/ca.crt, or declare the registry insecure in ",
                        "/etc/containers/registries.conf");
  }
  if (ContainsAny(output, {"unauthorized", "unauthenticated", "authentication required", "denied",
                           "forbidden", "invalid username"})) {
    return is_google ? absl::StrCat("log in with: gcloud auth print-access-token | ", tool,
                                    " login -u oauth2accesstoken --password-stdin ", host)
                     : absl::StrCat("log in with: ", tool, " login ", host,
                                    "; the account needs permission to push to ", image.repository);
  }
  if (ContainsAny(output, {"name unknown", "not found", "404"})) {
    if (!is_google) return absl::StrCat("create the repository ", image.repository, " first");
    const std::vector<std::string> parts = absl::StrSplit(image.repository, '/');
    return absl::StrCat("create the repository first: gcloud artifacts repositories create ",
                        parts.size() > 2 ? parts[2] : "NAME", " --repository-format=docker",
                        " --location=", absl::StripSuffix(host, "-docker.pkg.dev"));
  }
  return "";
}

absl::StatusOr<std::vector<Image>> AbsentImages(const std::vector<Image>& images,
                                                const PushOptions& options) {
  std::vector<Image> absent;
  if (images.empty()) return absent;
  MUSTER_ASSIGN_OR_RETURN(const auto folder, base::TemporaryFolder::Create(options.folder));
  for (const Image& image : images) {
    MUSTER_ASSIGN_OR_RETURN(const Tool tool, Tool::Find(image, folder, options));
    MUSTER_ASSIGN_OR_RETURN(const bool has, tool.Has(image));
    if (!has) absent.push_back(image);
  }
  return absent;
}

absl::Status PushImages(const std::vector<Image>& images, const PushOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Image> absent, AbsentImages(images, options));
  for (const Image& image : absent) {
    MUSTER_ASSIGN_OR_RETURN(const auto folder, base::TemporaryFolder::Create(options.folder));
    MUSTER_ASSIGN_OR_RETURN(const Tool tool, Tool::Find(image, folder, options));
    options.notify(absl::StrCat("pushing ", image.Reference(), ", made of ",
                                absl::StrJoin(image.programs, " and "),
                                " of this machine; Ctrl-C cancels"));
    MUSTER_RETURN_IF_ERROR(MakeLayout(image, folder, options));
    MUSTER_RETURN_IF_ERROR(tool.Push(image));
    options.notify(absl::StrCat("pushed ", image.Reference()));
  }
  return absl::OkStatus();
}

}  // namespace muster::platform
