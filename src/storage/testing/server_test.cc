// The conformance tests of the storage that MUSTER_TEST_STORAGE names: the URL of a folder on a
// server that runs already and that the environment configures. tests/e2e/storage_servers_test.py
// starts servers and runs these.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "storage/storage.h"
#include "storage/testing/conformance.h"

namespace muster::storage {
namespace {

// Each test has its own folder.
class ServerPlace final : public Place {
 public:
  explicit ServerPlace(const Url& folder)
      : root_(folder.Child(absl::StrReplaceAll(
            testing::UnitTest::GetInstance()->current_test_info()->name(), {{"/", "-"}}))) {}

  FileSystem& files() override { return **storage_.For(root_); }
  Url root() override { return root_; }

 private:
  const Url root_;
  Storage storage_;
};

std::vector<Backend> Servers() {
  const char* folder = std::getenv("MUSTER_TEST_STORAGE");
  if (folder == nullptr) return {};
  const Url url = *ParseUrl(folder);
  const bool has_folders = url.scheme == "hdfs";
  return {Backend{.name = url.scheme,
                  .make = [url](std::string*) -> std::unique_ptr<Place> {
                    return std::make_unique<ServerPlace>(url);
                  },
                  .renames = has_folders,
                  .colons = !has_folders}};
}

INSTANTIATE_TEST_SUITE_P(Server, ConformanceTest, testing::ValuesIn(Servers()));

}  // namespace
}  // namespace muster::storage
