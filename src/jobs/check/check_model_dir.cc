#include "jobs/check/check_model_dir.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "storage/setup.h"
#include "storage/url.h"

namespace muster::jobs {
namespace {

constexpr char kSubject[] = "model dir";

platform::Finding Missing(absl::string_view message, absl::string_view account = "") {
  return {platform::Grade::kMissing, kSubject,
          absl::StrCat(message, account.empty() ? "" : absl::StrCat(" (as ", account, ")"))};
}

}  // namespace

platform::Finding CheckModelDir(const job::JobSpec& spec, const base::Variables& variables) {
  if (!storage::IsSupported(spec.model_dir)) {
    return {platform::Grade::kWarning, kSubject,
            absl::StrCat(spec.model_dir,
                         ": not checked, because muster does not support this storage; the job's ",
                         "programs must, and need the credentials for it")};
  }
  const auto url = storage::ParseUrl(spec.model_dir);
  if (!url.ok()) return Missing(url.status().message());
  const auto account = storage::AccountOf(*url, variables);
  if (!account.ok()) {
    return Missing(absl::StrCat(spec.model_dir, ": ", account.status().message()));
  }
  storage::Storage storage(variables);
  const absl::Status tried = storage::CheckWritable(storage, *url, variables);
  if (!tried.ok()) return Missing(tried.message(), *account);
  return {platform::Grade::kOk, kSubject,
          absl::StrCat(spec.model_dir, ": can be written",
                       account->empty() ? "" : absl::StrCat(" as ", *account))};
}

}  // namespace muster::jobs
