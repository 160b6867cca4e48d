// For tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace muster {

// A folder of the test's own, removed with all that is in it.
class TempDir {
 public:
  TempDir() : path_(testing::TempDir() + "muster-XXXXXX") { ::mkdtemp(path_.data()); }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muster
