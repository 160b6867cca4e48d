// Logs during rotation, on a full disk, and with an index that could not be written.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "supervise/log/log_testing.h"

namespace muster::supervise {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const cluster::TaskId kTask{"worker", 0};

// A reader returns every line exactly once while its file is renamed continuously.
TEST_F(LogTest, AFollowerLosesNothingWhileSegmentsRotate) {
  constexpr int kLines = 20'000;
  std::thread writing([this] {
    LoggedTask task(directory_, kTask, {.rotate_bytes = 1000, .keep = 1'000'000});
    for (int i = 0; i < kLines; ++i) task.Write(absl::StrCat("line ", i, "\n"));
  });
  LogReader reader(directory_, kTask);
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  int next = 0;
  while (next < kLines && absl::Now() < give_up) {
    const auto line = reader.Next();
    if (!line.has_value()) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(line->text, absl::StrCat("line ", next));
    if (testing::Test::HasFailure()) break;
    ++next;
  }
  writing.join();
  EXPECT_EQ(next, kLines);
  EXPECT_FALSE(reader.Next().has_value());
}

// A slow reader loses whole segments, but returns no line twice or out of order.
TEST_F(LogTest, AFollowerThatIsTooSlowSkipsForward) {
  constexpr int kLines = 20'000;
  std::thread writing([this] {
    LoggedTask task(directory_, kTask, {.rotate_bytes = 100, .keep = 2});
    for (int i = 0; i < kLines; ++i) task.Write(absl::StrFormat("%08d\n", i));
  });
  LogReader reader(directory_, kTask);
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  int last = -1;
  while (last < kLines - 1 && absl::Now() < give_up) {
    const auto line = reader.Next();
    int number = -1;
    if (!line.has_value() || line->text.size() < 8) continue;  // a line is cut at a gap
    EXPECT_TRUE(line->text.size() == 8 && absl::SimpleAtoi(line->text, &number)) << line->text;
    EXPECT_GT(number, last);
    if (testing::Test::HasFailure()) break;
    last = number;
  }
  writing.join();
  EXPECT_EQ(last, kLines - 1);
}

TEST_F(LogTest, AFullDiskLosesOutputButNotTheTask) {
  if (::mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "cannot mount a small disk here: " << std::strerror(errno);
  }
  {
    LoggedTask task(directory_, kTask);
    const std::string ballast = base::JoinPath(directory_, "ballast");
    ASSERT_TRUE(base::WriteFileAtomically(ballast, std::string(32 << 10, 'x')).ok());
    const std::string line = std::string(1023, 'o') + "\n";
    for (int i = 0; i < 100; ++i) task.Write(line);
    const int64_t lost = task.writer().lost_bytes();
    EXPECT_GT(lost, 0);
    EXPECT_EQ(task.writer().written_bytes() + lost, 100 << 10);
    EXPECT_EQ(task.writer().status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(task.writer().status().message()), HasSubstr("worker-0.log"));

    std::filesystem::remove(ballast);
    task.Pass(absl::Seconds(2));
    task.Write("\nthere is room again\n");
    EXPECT_EQ(task.writer().lost_bytes(), lost);
    EXPECT_TRUE(task.writer().status().ok());
    LogReader reader(directory_, kTask);
    reader.SeekTail(1);
    EXPECT_THAT(AllLines(reader), ElementsAre("there is room again"));
    EXPECT_EQ(ContentOf(kTask).size(), static_cast<size_t>(task.writer().written_bytes()));
  }
  ::umount2(directory_.c_str(), MNT_DETACH);
}

TEST_F(LogTest, ADeletedFolderLosesOutputAndReportsTheCause) {
  LoggedTask task(directory_, kTask, {.rotate_bytes = 10});
  task.Write("0123456789");
  std::filesystem::rename(directory_, directory_ + ".away");
  task.Write("more\n");  // needs a new segment
  task.Pass(absl::Seconds(2));
  task.Write("and more\n");
  std::filesystem::rename(directory_ + ".away", directory_);
  EXPECT_EQ(task.writer().written_bytes() + task.writer().lost_bytes(), 24);
  task.Pass(absl::Seconds(2));
  task.Write("back\n");
  EXPECT_TRUE(task.writer().status().ok());
  EXPECT_THAT(ContentOf(kTask), HasSubstr("back\n"));
}

// Runs `body` in a child process, so that its limits do not affect this one.
void InChild(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

// A partially written index record must not shift the records after it.
TEST_F(LogTest, TimesAreRightAgainAfterTheIndexCouldNotBeWritten) {
  InChild([this] {
    ::signal(SIGXFSZ, SIG_IGN);
    LoggedTask task(directory_, kTask);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{.rlim_cur = 100, .rlim_max = limit.rlim_max};  // four records and a part
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 6; ++i) {
      task.Write("x\n");
      task.Pass(absl::Seconds(1));
    }
    ::setrlimit(RLIMIT_FSIZE, &limit);
    task.writer().BeginAttempt(3);
    const absl::Time later = task.now();
    task.Write("later\n");
    LogReader reader(directory_, kTask);
    std::optional<LogLine> last;
    while (auto line = reader.Next()) last = line;
    EXPECT_EQ(last->text, "later");
    EXPECT_EQ(last->attempt, 3);
    EXPECT_EQ(last->time, later);
  });
}

TEST_F(LogTest, AFileSizeLimitLosesOutputButNotTheTask) {
  InChild([this] {
    ::signal(SIGXFSZ, SIG_IGN);
    LoggedTask task(directory_, kTask);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{.rlim_cur = 100'000, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    task.Write(std::string(150'000, 'o'));
    EXPECT_EQ(task.writer().written_bytes(), 100'000);
    EXPECT_EQ(task.writer().lost_bytes(), 50'000);
    EXPECT_FALSE(task.writer().status().ok());
  });
}

TEST_F(LogTest, AReaderIsNotifiedOfNewOutput) {
  LoggedTask task(directory_, kTask);
  MergedLogReader reader(directory_, {kTask});
  reader.Acknowledge();
  char byte;
  EXPECT_EQ(::read(reader.fd(), &byte, 0), -1);  // inotify: nothing to read
  task.Write("news\n");
  std::string events(4096, '\0');
  EXPECT_GT(::read(reader.fd(), events.data(), events.size()), 0);
}

}  // namespace
}  // namespace muster::supervise
