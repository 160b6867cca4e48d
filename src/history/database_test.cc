#include "history/database.h"

#include <sys/stat.h>

#include <string>

#include "gmock/gmock.h"
#include "history/test_support.h"

namespace muster::history {
namespace {

using testing::HasSubstr;

class DatabaseTest : public HistoryTest {
 protected:
  DatabaseTest() : path_(base::JoinPath(home_, "test.db")) {
    EXPECT_TRUE(base::WriteFileAtomically(path_, "").ok());
  }

  std::unique_ptr<Database> Open(absl::Duration busy_timeout = absl::Seconds(5)) {
    auto database = Database::Open(path_, busy_timeout);
    EXPECT_TRUE(database.ok()) << database.status();
    return database.ok() ? *std::move(database) : nullptr;
  }

  std::string path_;
};

TEST_F(DatabaseTest, ValuesAreReadBackUnchanged) {
  const std::unique_ptr<Database> database = Open();
  const std::string bytes("a\0b\xff", 4);
  ASSERT_TRUE(database->Execute("CREATE TABLE t (a, b, c, d)").ok());
  {
    auto insert = database->Prepare("INSERT INTO t VALUES (?, ?, ?, ?)");
    ASSERT_TRUE(insert.ok());
    insert->Bind(bytes, int64_t{-1} << 62, std::optional<int64_t>(), absl::string_view());
    ASSERT_TRUE(insert->Run().ok());
    EXPECT_EQ(database->Changes(), 1);
  }
  auto query = database->Prepare("SELECT a, b, c, d, typeof(d) FROM t");
  ASSERT_TRUE(query.ok());
  ASSERT_TRUE(*query->Step());
  EXPECT_EQ(query->Text(0), bytes);
  EXPECT_EQ(query->Int(1), int64_t{-1} << 62);
  EXPECT_EQ(query->OptionalInt(2), std::nullopt);
  EXPECT_EQ(query->Text(3), "");
  EXPECT_EQ(query->Text(4), "text");
  EXPECT_FALSE(*query->Step());
}

TEST_F(DatabaseTest, TransactionIsUndoneUnlessCommitted) {
  const std::unique_ptr<Database> database = Open();
  ASSERT_TRUE(database->Execute("CREATE TABLE t (a)").ok());
  for (const bool commit : {false, true}) {
    auto transaction = Transaction::Begin(*database);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE(database->Execute("INSERT INTO t VALUES (1)").ok());
    if (commit) {
      ASSERT_TRUE(transaction->Commit().ok());
    }
  }
  EXPECT_EQ(*database->QueryInt("SELECT count(*) FROM t"), 1);
}

TEST_F(DatabaseTest, FullDiskIsResourceExhausted) {
  const std::unique_ptr<Database> database = Open();
  ASSERT_TRUE(database->Execute("CREATE TABLE t (a); PRAGMA max_page_count = 4").ok());
  const absl::Status status = database->Execute("INSERT INTO t VALUES (zeroblob(100000))");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the disk under " + home_ + " is full"));
}

TEST_F(DatabaseTest, WaitsForTheLockUntilTheTimeout) {
  const std::unique_ptr<Database> holder = Open();
  const std::unique_ptr<Database> waiter = Open(absl::Milliseconds(20));
  auto transaction = Transaction::Begin(*holder);
  ASSERT_TRUE(transaction.ok());
  const absl::Status status = Transaction::Begin(*waiter).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another process"));
}

TEST_F(DatabaseTest, GarbageIsDataLoss) {
  ASSERT_TRUE(base::WriteFileAtomically(path_, std::string(5000, 'x')).ok());
  auto database = Database::Open(path_, absl::Seconds(1));
  const absl::Status status =
      database.ok() ? (*database)->QueryInt("PRAGMA user_version").status() : database.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

TEST_F(DatabaseTest, AbsentAndUnwritableFilesNameTheRemedy) {
  const absl::Status absent =
      Database::Open(base::JoinPath(home_, "absent.db"), absl::Seconds(1)).status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(absent.message()), HasSubstr("No such file"));
  ASSERT_EQ(::chmod(path_.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(home_.c_str(), 0755), 0);
  EXPECT_TRUE(Succeeded(Fork([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return false;
    const absl::Status status = Database::Open(path_, absl::Seconds(1)).status();
    return status.code() == absl::StatusCode::kPermissionDenied &&
           absl::StrContains(status.message(), "is not writable");
  })));
}

}  // namespace
}  // namespace muster::history
