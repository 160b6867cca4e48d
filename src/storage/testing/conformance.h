// What every storage must do, as one suite of tests. A storage joins it with
//   INSTANTIATE_TEST_SUITE_P(Name, ConformanceTest, testing::Values(Backend{…}));
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "storage/file_system.h"

namespace muster::storage {

// One storage under test, empty when it is made.
class Place {
 public:
  virtual ~Place() = default;
  virtual FileSystem& files() = 0;
  virtual Url root() = 0;  // names are made with Child()
};

struct Backend {
  std::string name;
  // Null when it cannot be had here; `why` then says the reason, and the tests are skipped.
  std::function<std::unique_ptr<Place>(std::string* why)> make;
  bool renames = true;
  // The storage itself decides who creates first, also between two that try at the same time.
  bool exclusive = true;
  // It lists names that hold any of &<>'()!* right.
  bool lists_markup = true;
  bool colons = true;    // names may hold them
  bool replaces = true;  // at once, also while others read
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
  std::string Content(const std::string& name);  // "!…" when it cannot be read
  // The names below the root of what is listed, a folder with its slash.
  std::vector<std::string> Names(const std::string& prefix, Depth depth);
  std::vector<std::string> Matching(const std::string& pattern);

 private:
  std::vector<std::string> Relative(const absl::StatusOr<std::vector<FileInfo>>& infos);

  std::unique_ptr<Place> place_;
};

}  // namespace muster::storage
