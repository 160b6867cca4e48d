// The conformance tests of storages. A storage joins them with
//   INSTANTIATE_TEST_SUITE_P(Name, ConformanceTest, testing::Values(Backend{…}));
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "storage/file_system.h"

namespace muster::storage {

// One storage under test, initially empty.
class Place {
 public:
  virtual ~Place() = default;
  virtual FileSystem& files() = 0;
  virtual Url root() = 0;  // tests use its Child()ren
};

struct Backend {
  std::string name;
  // Returns null and sets *why if the storage is not available here; the tests are then skipped.
  std::function<std::unique_ptr<Place>(std::string* why)> make;
  bool renames = true;
  // IfExists::kFail is atomic, also between concurrent writers.
  bool exclusive = true;
  // Listings return names with any of &<>'()!* correctly.
  bool lists_markup = true;
  bool colons = true;    // names may contain colons
  bool replaces = true;  // replaces atomically, also while others read
};

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

class ConformanceTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    std::string why;
    place_ = GetParam().make(&why);
    if (place_ == nullptr) GTEST_SKIP() << why;
  }

  FileSystem& files() { return place_->files(); }
  Url At(const std::string& name) { return place_->root().Child(name); }
  absl::Status Write(const std::string& name, const std::string& content,
                     IfExists if_exists = IfExists::kReplace) {
    return WriteWhole(files(), At(name), content, if_exists);
  }
  std::string Content(const std::string& name);  // "!…" if it cannot be read
  // Returns the listed names relative to the root; folders end with a slash.
  std::vector<std::string> Names(const std::string& prefix, Depth depth);
  std::vector<std::string> Matching(const std::string& pattern);

 private:
  std::vector<std::string> Relative(const absl::StatusOr<std::vector<FileInfo>>& infos);

  std::unique_ptr<Place> place_;
};

}  // namespace muster::storage
