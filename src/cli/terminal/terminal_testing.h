// Test fixtures for output: a file, a pseudo-terminal and environment variables.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/terminal/terminal.h"
#include "gtest/gtest.h"

namespace muster::cli {

// A Terminal that writes to a temporary file.
class FileOutput {
 public:
  FileOutput() : stream_(std::tmpfile()), terminal_(stream_) {}
  ~FileOutput() { std::fclose(stream_); }
  Terminal& terminal() { return terminal_; }
  std::string Text() {
    std::fflush(stream_);
    std::string text(static_cast<size_t>(std::ftell(stream_)), '\0');
    std::rewind(stream_);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), stream_), text.size());
    return text;
  }

 private:
  FILE* stream_;
  Terminal terminal_;
};

// A Terminal on a pseudo-terminal of 24 lines and `columns` columns.
class Screen {
 public:
  explicit Screen(int columns)
      : master_(::posix_openpt(O_RDWR | O_NOCTTY)),
        stream_(OpenSlave(columns)),
        terminal_(stream_) {}
  ~Screen() {
    std::fclose(stream_);
    ::close(master_);
  }
  Terminal& terminal() { return terminal_; }
  // Returns the output since the last call. REQUIRES: that is at most 4 KiB, the buffer of a
  // terminal. The kernel delivers bytes asynchronously, so this reads until an end marker.
  std::string Text() {
    const std::string mark =
        "\x1e"
        "end\x1e";
    std::fputs(mark.c_str(), stream_);
    std::fflush(stream_);
    std::string text;
    while (!text.ends_with(mark)) {
      char buffer[4096];
      const ssize_t n = ::read(master_, buffer, sizeof(buffer));
      if (n <= 0) return "the terminal is gone";
      text.append(buffer, static_cast<size_t>(n));
    }
    return text.substr(0, text.size() - mark.size());
  }

 private:
  FILE* OpenSlave(int columns) const {
    EXPECT_EQ(::grantpt(master_), 0);
    EXPECT_EQ(::unlockpt(master_), 0);
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns)};
    EXPECT_EQ(::ioctl(slave, TIOCSWINSZ, &size), 0);
    termios settings{};
    ::tcgetattr(slave, &settings);
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // no \r before each \n
    ::tcsetattr(slave, TCSANOW, &settings);
    return ::fdopen(slave, "w");
  }

  int master_;
  FILE* stream_;
  Terminal terminal_;
};

// Sets an environment variable for the lifetime of the object, or unsets it if `value` is null.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, had_ = true;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~ScopedVariable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

}  // namespace muster::cli
