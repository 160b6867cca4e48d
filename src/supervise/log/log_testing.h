// Shared by the tests of logs: a folder, and a task whose output goes through a pipe.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/testing.h"
#include "gtest/gtest.h"
#include "supervise/log/log_format.h"
#include "supervise/log/log_reader.h"
#include "supervise/log/log_writer.h"

namespace muster::supervise {

class LogTest : public testing::Test {
 protected:
  std::string ContentOf(const cluster::TaskId& task) const {
    const std::string stem = LogStem(task);
    std::string content;
    for (uint32_t i = OldestSegment(directory_, stem); i < CurrentSegment(directory_, stem); ++i) {
      content += base::ReadFile(RotatedLogPath(directory_, stem, i)).value_or("");
    }
    return content + base::ReadFile(CurrentLogPath(directory_, stem)).value_or("");
  }

  const base::TempDir temp_;
  const std::string directory_ = temp_.path();
};

// A task with a pipe and a LogWriter. Write() puts bytes into the pipe and drains it to the log.
class LoggedTask {
 public:
  LoggedTask(const std::string& directory, cluster::TaskId task, LogWriter::Options options = {}) {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    read_ = base::UniqueFd(fds[0]);
    write_ = base::UniqueFd(fds[1]);
    auto writer = LogWriter::Open(directory, task, options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }

  LogWriter& writer() { return *writer_; }
  int pipe() const { return read_.get(); }
  void Close() { write_.Reset(); }
  void Pass(absl::Duration duration) { now_ += duration; }
  absl::Time now() const { return now_; }

  void Write(absl::string_view text) {
    while (!text.empty()) {
      const size_t some = std::min<size_t>(text.size(), 4096);
      ASSERT_TRUE(base::WriteAll(write_.get(), text.substr(0, some)).ok());
      text.remove_prefix(some);
      Drain();
    }
  }
  void Drain() {
    while (writer_->Drain(read_.get(), now_) == LogWriter::Outcome::kMoved) {
    }
  }

 private:
  base::UniqueFd read_;
  base::UniqueFd write_;
  std::unique_ptr<LogWriter> writer_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

inline std::vector<std::string> Lines(LogReader& reader) {
  std::vector<std::string> lines;
  while (auto line = reader.Next()) lines.push_back(line->text);
  return lines;
}

inline std::vector<std::string> AllLines(LogReader& reader) {
  std::vector<std::string> lines = Lines(reader);
  if (auto line = reader.TakePartial()) lines.push_back(line->text + " (partial)");
  return lines;
}

}  // namespace muster::supervise
